/**
 * What Redis does at once and as a whole (Lua, Redis 6.2 and later). All times are of its own clock, so that none of a replica's matters.
 * A value of others may have any size: scripts look at that before they answer with it, which a blocking XREAD could not do.
 */
export interface Script {
  readonly lua: string;
}

const NOW = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local function whole(number) return string.format('%.0f', number) end
`;

/**
 * KEYS held, reports, count. ARGV node, epoch, revision, base, packed report, packed change, age, mode, most entries.
 * A delta is taken where its base is what is held; a whole report unless a later one of its epoch is held; one that is restored where
 * what is held is older: by its revision, since a server that was frozen takes what it was sent before only now. Both the hash and the stream have it then, or neither.
 */
export const PUBLISH: Script = {
  lua: `${NOW}
local node, epoch, revision, base, mode = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[8]
local received = now - tonumber(ARGV[7])
local held = redis.call('HGET', KEYS[1], node) or ''
local heldAt, heldEpoch, heldRevision = string.match(held, '^v1\\n%d+\\n(%d+)\\n([^\\n]*)\\n(%d+)\\n')
if mode == 'restore' then
  if heldEpoch == epoch then
    if tonumber(heldRevision) >= tonumber(revision) then return {'known'} end
  elseif heldAt and tonumber(heldAt) >= received - 1000 then return {'known'} end
elseif base ~= '' then
  if heldEpoch ~= epoch or heldRevision ~= base then return {'resync'} end
elseif heldEpoch == epoch and tonumber(heldRevision) > tonumber(revision) then
  return {'resync'}
end
local order = whole(redis.call('INCR', KEYS[3]))
local head = table.concat({'v1', order, whole(received), epoch, revision, ''}, '\\n')
redis.call('HSET', KEYS[1], node, head .. ARGV[5])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', ARGV[9], '*',
  'n', node, 'e', epoch, 'r', revision, 'b', base, 't', whole(received), 'q', order, 'd', ARGV[6])
return {'ok', order}
`,
};

/** KEYS held. ARGV cursor, most bytes of a value, of the page. Answers the next cursor, the time, then name and value; 0: too large, 1: ask for it alone. */
export const PAGE: Script = {
  lua: `${NOW}
local reply = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 20)
local most, left = tonumber(ARGV[2]), tonumber(ARGV[3])
local page = {reply[1], whole(now)}
for at = 1, #reply[2], 2 do
  local name, value = reply[2][at], reply[2][at + 1]
  page[#page + 1] = #name <= 253 and name or ''
  if #name > 253 or #value > most then page[#page + 1] = 0
  elseif #value > left then page[#page + 1] = 1
  else
    left = left - #value
    page[#page + 1] = value
  end
end
return page
`,
};

/** KEYS held. ARGV node, most bytes. Answers the time, and nothing, 0 (too large) or the value. */
export const ONE: Script = {
  lua: `${NOW}
local size = redis.call('HSTRLEN', KEYS[1], ARGV[1])
if size == 0 then return {whole(now)} end
if size > tonumber(ARGV[2]) then return {whole(now), 0} end
return {whole(now), redis.call('HGET', KEYS[1], ARGV[1])}
`,
};

/** KEYS reports, count, view, snapshot. ARGV most bytes of a snapshot. Where the streams end, and the view there. */
export const TIP: Script = {
  lua: `${NOW}
local function last(key)
  local entries = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)
  return entries[1] and entries[1][1] or '0-0'
end
local snapshot = redis.call('HMGET', KEYS[4], 'p', 'r', 'd')
local function bounded(value, most) return value and #value <= most and value or '' end
return {whole(now), last(KEYS[1]), redis.call('GET', KEYS[2]) or '0', last(KEYS[3]),
  bounded(snapshot[1], 64), bounded(snapshot[2], 64), bounded(snapshot[3], tonumber(ARGV[1]))}
`,
};

/**
 * KEYS reports, view. ARGV last id of each, most entries, bytes of an answer, most bytes of an entry of each. Of an entry that is larger the id
 * alone.
 */
export const FOLLOW: Script = {
  lua: `${NOW}
local function after(key, id, most)
  local taken, left = {}, tonumber(ARGV[4])
  for _, entry in ipairs(redis.call('XRANGE', key, '(' .. id, '+', 'COUNT', ARGV[3])) do
    local size = 0
    for _, field in ipairs(entry[2]) do size = size + #field end
    if size > most then taken[#taken + 1] = {entry[1]}
    elseif size > left then break
    else
      left = left - size
      taken[#taken + 1] = entry
    end
  end
  return taken
end
return {whole(now), after(KEYS[1], ARGV[1], tonumber(ARGV[5])), after(KEYS[2], ARGV[2], tonumber(ARGV[6]))}
`,
};

/** KEYS held. ARGV nodes. */
export const FORGET: Script = { lua: `return redis.call('HDEL', KEYS[1], unpack(ARGV))` };

/** KEYS lease. ARGV token, milliseconds. 1: it is ours, and lasts so long from now. */
export const LEASE: Script = {
  lua: `
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`,
};

/** KEYS lease. ARGV token. */
export const RELEASE: Script = {
  lua: `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
};

/**
 * KEYS lease, view, snapshot. ARGV token, position before, server, position after, packed view, packed patch, most entries. Without a patch a new
 * history begins. Who lost the lease while it was frozen is refused here, whatever it believes.
 */
export const APPEND: Script = {
  lua: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lost' end
if ARGV[6] == '' then
  redis.call('XTRIM', KEYS[2], 'MAXLEN', 0)
else
  local snapshot = redis.call('HMGET', KEYS[3], 'p', 'r')
  if snapshot[1] ~= ARGV[2] or snapshot[2] ~= ARGV[3] then return 'behind' end
end
redis.call('HSET', KEYS[3], 'p', ARGV[4], 'r', ARGV[3], 'd', ARGV[5])
redis.call('XADD', KEYS[2], 'MAXLEN', ARGV[7], '*', 'p', ARGV[4], 'd', ARGV[6])
return 'ok'
`,
};

/**
 * KEYS wanted, answer. ARGV node, milliseconds, most nodes, most bytes. Answers full where as many others are wanted, or ok, the time and what the
 * node answered; what is too large is none of ours.
 */
export const WANT_FORWARDING: Script = {
  lua: `${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', whole(now))
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) then return {'full'} end
redis.call('ZADD', KEYS[1], whole(now + tonumber(ARGV[2])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local size = redis.call('STRLEN', KEYS[2])
if size == 0 or size > tonumber(ARGV[4]) then return {'ok', whole(now)} end
return {'ok', whole(now), redis.call('GET', KEYS[2])}
`,
};

/** KEYS wanted. ARGV most nodes. */
export const WANTED_NODES: Script = {
  lua: `${NOW}
local names = {}
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. whole(now), '+inf', 'LIMIT', 0, ARGV[1])) do
  if #name <= 253 then names[#names + 1] = name end
end
return names
`,
};

/** KEYS wanted, answer. ARGV node, packed answer, milliseconds. */
export const PUT_FORWARDING: Script = {
  lua: `${NOW}
local untilMs = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not untilMs or tonumber(untilMs) <= now then return 0 end
redis.call('SET', KEYS[2], 'v1\\n' .. whole(now) .. '\\n' .. ARGV[2], 'PX', ARGV[3])
return 1
`,
};
