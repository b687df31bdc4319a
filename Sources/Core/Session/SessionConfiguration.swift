// SPDX-License-Identifier: Apache-2.0
import CurlewEncoding
import CurlewHTTP
import CurlewTransport
import Dispatch

/// How a session works: what its requests carry, how they travel, and where their answers arrive.
///
/// The members of ``TransferOptions`` and ``TransportConfiguration`` can be read and set here too: `configuration.idleTimeout = .seconds(5)`.
@dynamicMemberLookup
public struct SessionConfiguration: Sendable {
    /// How each request travels: timeouts, version of HTTP, TLS, proxy, decoding.
    public var options = TransferOptions()

    /// How the session uses connections.
    public var connections = TransportConfiguration()

    /// Header fields that every request carries unless it has a field of that name itself; none by default.
    public var headers: HTTPHeaders = [:]

    /// What is done with redirects.
    public var redirects = RedirectPolicy()

    /// The largest body that a data or upload request takes into memory, in bytes after decoding; 64 MiB by default.
    ///
    /// A larger one fails with ``TransferFailure/Kind/tooLarge``. Downloads and streamed bodies have no limit.
    public var maximumBodySize = 64 * 1024 * 1024

    /// Are told what happens to the session's requests; none by default.
    public var eventMonitors: [any EventMonitor] = []

    /// Whether what happens to requests is posted as the notifications of `Notification.Name.Task`, `false` by default: that costs each
    /// request some microseconds, whether anybody observes it or not.
    public var postsNotifications = false

    /// Where cookies are kept (RFC 6265); `nil`, the default, neither sends nor keeps any.
    public var cookieStorage: HTTPCookieStorage?

    /// Where credentials are looked up for servers that ask for them, and accepted ones are kept, unless they are for one request alone;
    /// `nil`, the default, neither looks up nor keeps any.
    ///
    /// A request's own credential goes before.
    public var credentialStorage: URLCredentialStorage?

    /// Where closures run that are given no queue of their own; `.main` by default.
    ///
    /// On Linux the main queue runs only under `RunLoop.main`, `dispatchMain()` or an asynchronous `@main`: a program without one of
    /// those sets a queue of its own here.
    public var callbackQueue: DispatchQueue = .main

    /// Where downloads without a destination URL are written; the system's directory for temporary files by default.
    public var temporaryDirectory = FileManager.default.temporaryDirectory

    /// Makes a configuration with the defaults.
    public init() {}

    /// An option of the transfers.
    public subscript<Value>(dynamicMember member: WritableKeyPath<TransferOptions, Value>) -> Value {
        get { options[keyPath: member] }
        set { options[keyPath: member] = newValue }
    }

    /// A setting of the connections.
    public subscript<Value>(dynamicMember member: WritableKeyPath<TransportConfiguration, Value>) -> Value {
        get { connections[keyPath: member] }
        set { connections[keyPath: member] = newValue }
    }
}
