// Allure's configuration, copied beside the file settings.json, which allure_page.py writes.
import { readFileSync } from "node:fs";

const settings = JSON.parse(readFileSync(new URL("settings.json", import.meta.url), "utf8"));

export default {
  name: settings.name,
  categories: settings.categories,
  // Each release is an environment: the label of a result names it.
  environments: Object.fromEntries(
    Object.entries(settings.environments).map(([release, shown], number) => [
      `environment_${number}`,
      {
        name: shown,
        matcher: ({ labels }) => labels.some(({ name, value }) => name === settings.label && value === release),
      },
    ]),
  ),
  plugins: {
    awesome: { options: { singleFile: true, reportLanguage: "en" } },
  },
};
