// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport

extension RequestDriver: CacheDecider {
    /// Asks users on the session's queue, if they have something to say; only about data and upload requests.
    func decide(aboutCaching proposed: CachedURLResponse, decided: @escaping @Sendable (CachedURLResponse?) -> Void) {
        guard let closure = sessionDelegate.closures.withLock({ $0.dataTaskWillCacheResponse }), body is DataReceiver, let task else {
            return decided(proposed)
        }
        session.queue.async { [session] in closure(session, task, proposed, decided) }
    }
}

extension SessionConfiguration {
    /// A transport with what of the configuration stands before it: stubs first, then the cache.
    func completed(_ transport: any Transport) -> any Transport {
        let cached: any Transport = urlCache.map { CachingTransport(transport, cache: $0) } ?? transport
        return protocolClasses.isEmpty ? cached : ProtocolTransport(cached, classes: protocolClasses)
    }
}
