// From the repository: npx allure@3 generate --config reports/allurerc.mjs reports/latest/allure-results
// The categories are those of every results directory; each release that was measured is an environment.
import { existsSync, readFileSync, readdirSync } from "node:fs";

const read = (path) => JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8"));

const directory = "latest/allure-results/";

const results = existsSync(new URL(directory, import.meta.url))
  ? readdirSync(new URL(directory, import.meta.url)).filter((name) => name.endsWith("-result.json"))
  : [];

const releases = new Set(
  results
    .flatMap((name) => read(directory + name).labels ?? [])
    .filter(({ name }) => name === "env")
    .map(({ value }) => value),
);

const environments = Object.fromEntries(
  [...releases].sort().map((release) => [
    release.replace(/[^A-Za-z0-9]/g, "_"),
    {
      name: release,
      matcher: ({ labels }) => labels.some(({ name, value }) => name === "env" && value === release),
    },
  ]),
);

export default {
  name: "Performance claims",
  output: "reports/latest/allure-report",
  historyPath: "reports/latest/allure-history.jsonl",
  categories: read("categories.json"),
  environments,
  plugins: {
    awesome: { options: { singleFile: true, reportLanguage: "en" } },
  },
};
