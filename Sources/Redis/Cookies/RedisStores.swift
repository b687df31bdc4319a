// SPDX-License-Identifier: Apache-2.0
#if Redis
public import CurlewCookies

extension CookieStore {
    /// A store on a Redis server, whose cookies the processes of a fleet share.
    ///
    /// ```swift
    /// configuration.cookies = .redis(redis, name: "service")
    /// ```
    ///
    /// Each process has all cookies in memory, and reads those of the server before a request if another process has changed them, which is
    /// published on a channel. A change is made to what the server has then; of two processes that change one cookie, a name with its
    /// domain and path, the first one counts, and changes of others are merged. The cookies are one value of the server, replaced as a
    /// whole: a few hundred of them are some tens of kilobytes with each change.
    ///
    /// If the server is unavailable or late, requests do not fail: they use what is in memory, after `RedisConfiguration.commandTimeout` at
    /// most. Changes count in memory, and are written with the next one that can be; ``CurlewCookies/CookieStore/lastError`` says why not.
    /// After the server has lost the value, restarted without persistence for example, each process keeps what it has in memory, and stores
    /// that with its next change. Use no server that evicts. The members that throw may throw `RedisError`.
    ///
    /// - Parameters:
    ///   - client: the server's client.
    ///   - name: the store's name; processes that give the same one share it.
    ///   - keepsSessionCookies: whether cookies without an expiration date are shared; `true` by default, as a fleet's sessions end with no
    ///     process. Otherwise they are in the memory of each.
    ///   - limits: how many cookies are stored, the same in all processes.
    ///   - sealedWith: the keys that seal the value; `nil`, the default, to store it as it is.
    public static func redis(
        _ client: RedisClient, name: String = "default", keepsSessionCookies: Bool = true, limits: Limits = Limits(),
        sealedWith: SealingKeys? = nil
    ) -> CookieStore {
        CookieStore(
            place: RedisPlace(client, store: "cookies1", name: name, sealedWith: sealedWith), keepsSessionCookies: keepsSessionCookies,
            limits: limits)
    }
}

extension HSTSStore {
    /// A store on a Redis server, whose hosts the processes of a fleet share; it is read, merged and replaced like that of
    /// ``CurlewCookies/CookieStore/redis(_:name:keepsSessionCookies:limits:sealedWith:)``, and behaves as that does without its server.
    ///
    /// - Parameters:
    ///   - client: the server's client.
    ///   - name: the store's name; processes that give the same one share it.
    ///   - sealedWith: the keys that seal the value; `nil`, the default, to store it as it is.
    public static func redis(_ client: RedisClient, name: String = "default", sealedWith: SealingKeys? = nil) -> HSTSStore {
        HSTSStore(place: RedisPlace(client, store: "hsts1", name: name, sealedWith: sealedWith))
    }
}
#endif
