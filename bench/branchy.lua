-- SPDX-License-Identifier: MIT
-- Calls, tables, a sort, strings: what an interpreter does all day.
local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
end

local numbers, sum = {}, 0
for i = 1, 600000 do numbers[i] = (i * 7919) % 100003 end
table.sort(numbers)
for i, v in ipairs(numbers) do sum = sum + v * i % 7 end

local words, digits = {}, 0
for i = 1, 90000 do words[#words + 1] = string.format("%d-%s", i, ("x"):rep(i % 13)) end
for w in table.concat(words, " "):gmatch("%d+") do digits = digits + #w end

print(fib(29), sum, digits)
