// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewURLLoading

/// The cookies and header fields of `--session` for the origin of a URL, while a command runs.
struct KeptSession: @unchecked Sendable {  // the storage is thread-safe, all else is constant
    private let session: SessionFile
    private let file: URL
    private let items: [RequestItem]
    /// The only host whose cookies are kept, where several share the storage.
    private let host: String?
    let cookies: HTTPCookieStorage

    /// - Parameters:
    ///   - items: have fields that are kept.
    ///   - cookies: the storage of several origins; `nil` for one of its own.
    init(
        _ name: String, for url: String, items: [RequestItem], _ environment: [String: String], sharing shared: HTTPCookieStorage? = nil
    ) throws {
        file = SessionFile.url(name: name, for: url, environment: environment)
        var session = try SessionFile(contentsOf: file)
        session.keep(items)
        let cookies = try shared ?? Self.storage()
        host = shared == nil ? nil : HTTPOrigin(url: url)?.host
        session.restore(into: cookies)
        (self.session, self.items, self.cookies) = (session, items, cookies)
    }

    /// A storage of cookies in memory.
    static func storage() throws -> HTTPCookieStorage {
        guard let cookies = URLSessionConfiguration.ephemeral.httpCookieStorage else {
            throw UsageError("--session has no storage for cookies on this system")
        }
        return cookies
    }

    func apply(to configuration: inout SessionConfiguration) {
        configuration.cookieStorage = cookies
        configuration.redirects.sensitiveHeaders.formUnion(session.headers.map(\.name))
    }

    func apply(to headers: inout HTTPHeaders) {
        for field in session.headers { headers.update(name: field.name, value: field.value) }
    }

    /// Writes what has changed.
    func save() throws {
        try SessionFile.update(file) { session in
            session.keep(items)
            session.keep(cookies, since: self.session.cookies, of: host)
        }
    }
}
