import Crypto

/// A Lua script with the digest by which servers know it.
package struct RedisScript: Sendable {
    package let source: String
    package let digest: String

    package init(_ source: String) {
        self.source = source
        digest = Insecure.SHA1.hash(data: Array(source.utf8)).hexadecimal
    }
}

extension Sequence where Element == UInt8 {
    /// Two lower-case digits for each byte.
    var hexadecimal: String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}

/// The scripts of a tier. All keys of a script have one hash tag.
enum TierScripts {
    /// Returns the value, or a lease, or how long another's lease lasts.
    ///
    /// Keys: value, lease, generation. Arguments: token, lease time, new generation, `1` to leave a present value out
    /// of account, the beginning of a value that is damaged (may be empty), the channel of the node.
    ///
    /// Values and leases count only in the generation of their group. A wait leaves the channel of its node, so that a
    /// value is announced to the nodes that wait for it only.
    static let lease = RedisScript(
        """
        local g = redis.call('GET', KEYS[3])
        if ARGV[4] ~= '1' then
          local v = redis.call('GET', KEYS[1])
          if v and g and string.sub(v, 5, 20) == g
            and (ARGV[5] == '' or string.sub(v, 1, #ARGV[5]) ~= ARGV[5]) then return {'value', v, g} end
        end
        if g and redis.call('HGET', KEYS[2], 'g') == g then
          if ARGV[4] ~= '1' then
            local w = redis.call('HGET', KEYS[2], 'w') or ''
            if not string.find(w, ARGV[6], 1, true) then redis.call('HSET', KEYS[2], 'w', w .. ARGV[6] .. ' ') end
          end
          return {'wait', redis.call('PTTL', KEYS[2])}
        end
        if not g then
          g = ARGV[3]
          redis.call('SET', KEYS[3], g, 'PX', 2 * tonumber(ARGV[2]))
        elseif redis.call('PTTL', KEYS[3]) < 2 * tonumber(ARGV[2]) then
          redis.call('PEXPIRE', KEYS[3], 2 * tonumber(ARGV[2]))
        end
        redis.call('DEL', KEYS[2])
        redis.call('HSET', KEYS[2], 't', ARGV[1], 'g', g)
        redis.call('PEXPIRE', KEYS[2], ARGV[2])
        return {'lease', g}
        """)

    /// Stores the value of a lease, ends the lease and wakes the nodes that wait. Returns 0 if the lease is not held.
    ///
    /// Keys: value, lease, generation. Arguments: token, generation, value, its time, message, `1` to keep the lease.
    static let store = RedisScript(
        """
        if redis.call('HGET', KEYS[2], 't') ~= ARGV[1] or redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
        redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
        if redis.call('PTTL', KEYS[3]) < tonumber(ARGV[4]) then redis.call('PEXPIRE', KEYS[3], ARGV[4]) end
        local w = redis.call('HGET', KEYS[2], 'w') or ''
        if ARGV[6] == '1' then redis.call('HDEL', KEYS[2], 'w') else redis.call('DEL', KEYS[2]) end
        for c in string.gmatch(w, '%S+') do redis.call('PUBLISH', c, ARGV[5]) end
        return 1
        """)

    /// Ends a lease without a value. Keys: lease. Arguments: token, message.
    static let release = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then return 0 end
        local w = redis.call('HGET', KEYS[1], 'w') or ''
        redis.call('DEL', KEYS[1])
        for c in string.gmatch(w, '%S+') do redis.call('PUBLISH', c, ARGV[2]) end
        return 1
        """)

    /// Lets leases last longer. Keys: lease, generation. Arguments: token, lease time.
    static let extend = RedisScript(
        """
        if redis.call('HGET', KEYS[1], 't') ~= ARGV[1] then return 0 end
        redis.call('PEXPIRE', KEYS[1], ARGV[2])
        if redis.call('PTTL', KEYS[2]) < 2 * tonumber(ARGV[2]) then
          redis.call('PEXPIRE', KEYS[2], 2 * tonumber(ARGV[2]))
        end
        return 1
        """)

    /// Removes keys, so that the values and leases that they are or belong to count no more.
    ///
    /// Keys: value and lease, or generation. Arguments: channel, message.
    static let remove = RedisScript(
        """
        local n = redis.call('DEL', unpack(KEYS))
        redis.call('PUBLISH', ARGV[1], ARGV[2])
        return n
        """)

    /// Adds a purge to the journal and announces it. Returns its position.
    ///
    /// Keys: journal, epoch. Arguments: kind, content, channel, length of the journal. The content of `all` is the new
    /// epoch, that of `tag` has it after the digest and a slash.
    static let announce = RedisScript(
        """
        local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
        local prior = last[1] and last[1][1] or '0-0'
        if ARGV[1] == 'all' then redis.call('SET', KEYS[2], ARGV[2]) end
        if ARGV[1] == 'tag' then redis.call('SET', KEYS[2], string.sub(ARGV[2], 34)) end
        local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*', 'k', ARGV[1], 'c', ARGV[2])
        redis.call('PUBLISH', ARGV[3], 'purge ' .. prior .. ' ' .. id .. ' ' .. ARGV[1] .. ' ' .. ARGV[2])
        return id
        """)

    /// Returns the epoch, the end of the journal, and the time of the server, and creates the former two.
    ///
    /// Keys: epoch, journal. Arguments: new epoch.
    static let open = RedisScript(
        """
        local e = redis.call('GET', KEYS[1])
        if not e then
          e = ARGV[1]
          redis.call('SET', KEYS[1], e)
        end
        local last = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
        local id = last[1] and last[1][1] or redis.call('XADD', KEYS[2], '*', 'k', 'begin', 'c', '-')
        local t = redis.call('TIME')
        return {e, id, t[1], t[2]}
        """)
}
