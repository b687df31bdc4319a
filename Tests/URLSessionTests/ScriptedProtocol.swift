// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTesting
import CurlewURLSession

/// Loads the requests to hosts that have a script, by it. Each test has a host of its own, so that all can run at the same time.
class ScriptedProtocol: URLProtocol {
    struct Script: Sendable {
        var load: @Sendable (ScriptedProtocol) -> Void
        /// The hosts of stopped instances.
        let stopped = Inbox<String>()
        let offered = Inbox<URLRequest>()
    }

    private static let scripts = Lock<[String: Script]>([:])

    /// Has requests to a host loaded by a closure, and returns the host.
    static func script(_ load: @escaping @Sendable (ScriptedProtocol) -> Void) -> (host: String, script: Script) {
        let host = "h\(UInt64.random(in: .min ... .max)).invalid"
        let script = Script(load: load)
        scripts.withLock { $0[host] = script }
        return (host, script)
    }

    private static func script(for request: URLRequest) -> Script? {
        request.url?.host.flatMap { host in scripts.withLock { $0[host] } }
    }

    override class func canInit(with request: URLRequest) -> Bool {
        guard let script = script(for: request), property(forKey: "handled", in: request) == nil else { return false }
        script.offered.put(request)
        return true
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() { Self.script(for: request)?.load(self) }

    override func stopLoading() { Self.script(for: request)?.stopped.put(request.url?.host ?? "") }

    /// Responds with a text.
    func respond(_ text: String, status: Int = 200, _ fields: [String: String] = [:]) {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(text.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    /// The body of the request, read to its end.
    var body: String {
        if let data = request.httpBody { return "data:" + String(decoding: data, as: UTF8.self) }
        guard let stream = request.httpBodyStream else { return "none" }
        stream.open()
        defer { stream.close() }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1000)
        while stream.hasBytesAvailable {
            let count = stream.read(&buffer, maxLength: buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return "stream:" + String(decoding: bytes, as: UTF8.self)
    }
}

/// A session whose requests to scripted hosts are loaded by scripts.
func scriptedSession(
    _ classes: [AnyClass] = [ScriptedProtocol.self], delegate: (any URLSessionDelegate)? = nil
) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = classes
    return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
}

extension URLRequest {
    /// The request with a property.
    func with(_ value: Any, forKey key: String) throws -> URLRequest {
        guard let request = (self as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { throw URLError(.badURL) }
        URLProtocol.setProperty(value, forKey: key, in: request)
        return request as URLRequest
    }
}
