"""The run id of made-up runs."""

import secrets

# Of this test process alone: ids are looked for on the whole machine, where other tests may run at the same time.
RUN_ID = secrets.token_hex(4)
