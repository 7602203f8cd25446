-- Several statements in one round trip: they are sent together, and the server executes one after the other until one
-- fails. Each has its own result, so an error belongs to a statement.
--
-- sysbench connects with CLIENT_MULTI_STATEMENTS, but its Lua functions read the first result only. So we call the
-- functions of the client library that sysbench is linked with, on the connection that sysbench made.
--
-- A batch is a list of its parts until it is sent: few strings are made, and hashed, for it. The functions of C are fast
-- before LuaJIT has compiled what calls them; with many threads and a slow cluster that takes most of a round.

local ffi = require("ffi")

ffi.cdef[[
typedef const uint8_t **batch_row; // the values of a row as texts that end with a zero; NULL is a null pointer
typedef struct { // db_conn_t of sysbench's db_driver.h; the first of the driver's data is a MYSQL *
   int error; int sql_errno; const char *sql_state; const char *sql_errmsg; void *driver; void **driver_data;
} batch_connection;
int mysql_real_query(void *mysql, const char *statements, unsigned long length);
int atoi(const uint8_t *digits);
double atof(const uint8_t *digits);
bool mysql_more_results(void *mysql);
int mysql_next_result(void *mysql);
void *mysql_store_result(void *mysql);
void mysql_free_result(void *result);
batch_row mysql_fetch_row(void *result);
uint64_t mysql_num_rows(void *result);
unsigned int mysql_field_count(void *mysql);
unsigned int mysql_warning_count(void *mysql);
unsigned int mysql_errno(void *mysql);
const char *mysql_error(void *mysql);
unsigned long mysql_thread_id(void *mysql);
uint64_t mysql_insert_id(void *mysql);
]]

local C, concat = ffi.C, table.concat
local MOST = 64 -- statements of a batch

local batch = {}

local mysql -- of this thread's connection
local parts, length = {}, 0 -- texts and numbers of the batch
local starts = {} -- the first part of each statement
local results = ffi.new("void *[?]", MOST + 1) -- by statement, from 1; null without rows
local count, received = 0, 0
local lead -- the first statement of the next batch, or nil

-- Takes sysbench's connection for the next batches. Raises an error for a sysbench whose connections are different.
function batch.take(con)
   mysql = ffi.cast("batch_connection *", con).driver_data[0]
   local number = tonumber(con:query_row("SELECT CONNECTION_ID()"))
   assert(number == tonumber(C.mysql_thread_id(mysql)), "this sysbench keeps its connections in an unknown way")
end

local function release()
   for number = 1, received do
      if results[number] ~= nil then
         C.mysql_free_result(results[number])
         results[number] = nil
      end
   end
   received = 0
end

-- Begins a batch.
function batch.clear()
   length, count = 0, 0
   if lead then
      local words = lead
      lead = nil
      batch.statement(words)
   end
end

-- The next batch begins with this statement.
function batch.first(words)
   lead = words
end

-- Writes a text, or an integer below 1e14.
function batch.text(words)
   length = length + 1
   parts[length] = words
end
local text = batch.text

-- Begins the next statement. Returns its number, from 1.
function batch.statement(words)
   if count > 0 then text(";") end
   count = count + 1
   starts[count] = length + 1
   text(words)
   return count
end

local function failed(number)
   error({
      sql_errno = C.mysql_errno(mysql), sql_errmsg = ffi.string(C.mysql_error(mysql)),
      query = table.concat(parts, "", starts[number], number < count and starts[number + 1] - 2 or length),
   }, 0)
end

-- Sends the batch, if it has statements, and waits for all its results. Raises the error of the first statement that
-- failed, a table with sql_errno, sql_errmsg and query. The server has not executed the statements after it, unless the
-- connection was lost.
function batch.send()
   if count == 0 then return end
   release()
   local whole = concat(parts, "", 1, length)
   local problem = C.mysql_real_query(mysql, whole, #whole)
   for number = 1, count do
      if problem ~= 0 then failed(number) end
      results[number], received = nil, number
      if C.mysql_field_count(mysql) > 0 then
         results[number] = C.mysql_store_result(mysql)
         if results[number] == nil then failed(number) end
      end
      if number < count then problem = C.mysql_next_result(mysql) end
   end
end

-- Reads what follows the first result of the last statement: a CALL has a result for each SELECT, and one without rows.
function batch.drain()
   while C.mysql_more_results(mysql) do
      if C.mysql_next_result(mysql) > 0 then failed(count) end
      local result = C.mysql_store_result(mysql)
      if result ~= nil then C.mysql_free_result(result) end
   end
end

-- The number of warnings of the last statement.
function batch.warnings()
   return C.mysql_warning_count(mysql)
end

-- The result of a statement, null without rows. It is there until the next batch is sent.
function batch.result(number)
   return results[number]
end

-- The AUTO_INCREMENT value that the last statement of the connection made, 0 for none; also one that sysbench executed.
function batch.insert_id()
   return tonumber(C.mysql_insert_id(mysql))
end

-- The number of rows in a statement's result.
function batch.rows(number)
   return tonumber(C.mysql_num_rows(results[number]))
end

-- The next row of a statement's result, null after the last one. Rows are there until the next batch is sent.
function batch.row(number)
   return C.mysql_fetch_row(results[number])
end

-- A value of a row as a number.
batch.integer, batch.decimal = C.atoi, C.atof

return batch
