// SPDX-License-Identifier: Apache-2.0
import Curlew

/// What `--session` keeps under a name, while a command runs: the cookies of all hosts, as a browser has them, and the header fields and
/// credentials of the origin of a URL.
struct KeptSession: Sendable {
    private let session: SessionFile
    private let file: URL
    private let items: [RequestItem]
    /// The credentials of the command line, which are kept; `nil` if it has none.
    private var given: (authorization: String?, login: SessionFile.Login?)?
    let cookies: CookieStore

    /// - Parameters:
    ///   - arguments: have fields that are kept.
    ///   - cookies: those of the same name for another URL of the command; `nil` for the first.
    init(
        _ name: String, for url: String, _ arguments: Arguments, _ environment: [String: String], sharing cookies: CookieStore? = nil
    ) throws {
        file = SessionFile.url(name: name, for: url, environment: environment)
        items = arguments.items
        var session = try SessionFile(contentsOf: file)
        if arguments.user != nil || arguments.token != nil || RequestURL.hasUserInfo(url) { session.keep(authorization: nil, login: nil) }
        session.keep(items)
        self.session = session
        if let cookies {
            self.cookies = cookies
        } else {
            self.cookies = .file(SessionFile.cookies(name: name, environment: environment), keepsSessionCookies: true)
            // A file that can't be read is named before anything is sent.
            _ = try self.cookies.cookies()
        }
    }

    /// What answers a challenge, where the command line has no credentials.
    var login: SessionFile.Login? { session.login }

    func apply(to configuration: inout SessionConfiguration) {
        configuration.cookies = cookies
        configuration.redirects.sensitiveHeaders.formUnion(session.headers.map(\.name))
    }

    /// Adds what is kept, in place of a token of the environment.
    func apply(to headers: inout HTTPHeaders) {
        if session.login != nil { headers.remove(name: "Authorization") }
        for field in session.headers { headers.update(name: field.name, value: field.value) }
    }

    /// Notes the credentials of the command line, without those of `~/.netrc`, which stay there.
    ///
    /// - Parameters:
    ///   - headers: the request's, with what is sent at once.
    ///   - login: what answers a challenge.
    mutating func note(_ arguments: Arguments, _ headers: HTTPHeaders, _ login: (user: String, password: String)? = nil) {
        guard arguments.user != nil || arguments.token != nil, !arguments.netrc else { return }
        let login = login.map { SessionFile.Login(user: $0.user, password: $0.password) }
        given = (login == nil ? headers["Authorization"] : nil, login)
    }

    /// Writes what has changed.
    func save() throws {
        try SessionFile.update(file) { session in
            if let given { session.keep(authorization: given.authorization, login: given.login) }
            session.keep(items)
        }
        try cookies.synchronize()
    }
}
