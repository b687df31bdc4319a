// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTransport

/// The parts of an HTTP Archive (http://www.softwareishard.com/blog/har-12-spec/) that Curlew writes and reads.
///
/// Names that begin with an underscore are Curlew's own, as the format allows.
struct HARArchive: Codable {
    struct Log: Codable {
        var version = "1.2"
        var creator = Creator()
        var entries: [HAREntry] = []
    }

    struct Creator: Codable {
        var name = "Curlew"
        var version = CurlewInfo.version
    }

    var log = Log()
}

/// An exchange.
struct HAREntry: Codable, Sendable {
    struct Field: Codable, Sendable {
        let name: String
        let value: String
    }

    struct Request: Codable, Sendable {
        let method: String
        let url: String
        let httpVersion: String
        let cookies: [Field]
        let headers: [Field]
        let queryString: [Field]
        let headersSize: Int64
        let bodySize: Int64
    }

    struct Content: Codable, Sendable {
        let size: Int64
        let mimeType: String
    }

    struct Response: Codable, Sendable {
        /// 0 without a response.
        let status: Int
        let statusText: String
        let httpVersion: String
        let cookies: [Field]
        let headers: [Field]
        let content: Content
        let redirectURL: String
        let headersSize: Int64
        let bodySize: Int64
        var _error: String?
    }

    struct Cache: Codable, Sendable {}

    /// In milliseconds; −1 for a phase that did not take place. `connect` contains `ssl`.
    struct Timings: Codable, Sendable {
        let blocked: Double
        let dns: Double
        let connect: Double
        let ssl: Double
        let send: Double
        let wait: Double
        let receive: Double
    }

    let startedDateTime: String
    /// In milliseconds.
    let time: Double
    let request: Request
    let response: Response
    var cache = Cache()
    let timings: Timings
    var serverIPAddress: String?
    var connection: String?
    let _requestID: UInt64
    var _name: String?
    let _attempt: Int
    let _exchange: Int
    let _reason: String
    let _fromCache: Bool
}

extension HAREntry {
    /// Describes an exchange.
    ///
    /// - Parameter redacts: whether secrets are redacted.
    init(_ exchange: OutgoingExchange, _ completion: ExchangeCompletion, redacts: Bool) {
        let metrics = completion.metrics
        startedDateTime = metrics.startDate.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let redaction = Redaction.current
        func fields(_ headers: HTTPHeaders) -> [Field] {
            headers.map { Field(name: $0.name, value: redacts ? redaction.value(of: $0) : $0.value) }
        }
        let version = metrics.httpVersion?.rawValue ?? ""
        let url = redacts ? exchange.redactedURL : exchange.url
        request = Request(
            method: exchange.method.rawValue, url: url, httpVersion: version, cookies: [], headers: fields(exchange.headers),
            queryString: Self.query(of: url), headersSize: metrics.requestHeaderBytes, bodySize: metrics.requestBodyBytes)
        let head = completion.head
        func value(of name: String) -> String {
            guard let value = head?.value(for: name) else { return "" }
            return redacts ? redaction.value(of: HTTPHeader(name: name, value: value)) : value
        }
        // Of other errors only the type: their texts may have secrets.
        let error = completion.error.map { $0.ownText ?? $0.kindName }
        response = Response(
            status: head?.statusCode ?? 0, statusText: head?.reasonPhrase ?? "", httpVersion: version, cookies: [],
            headers: head.map { fields($0.headers) } ?? [],
            content: Content(size: metrics.responseBodyBytes, mimeType: value(of: "Content-Type")),
            redirectURL: value(of: "Location"), headersSize: metrics.responseHeaderBytes, bodySize: metrics.responseBodyBytes, _error: error
        )
        timings = Timings(metrics)
        time = metrics.total.milliseconds
        serverIPAddress = metrics.remoteAddress
        connection = metrics.localPort.map { String($0) }
        _requestID = exchange.requestID
        _name = exchange.name
        _attempt = exchange.attempt
        _exchange = exchange.number
        _reason = exchange.reason.rawValue
        _fromCache = metrics.isFromCache
    }

    /// The items of a URL's query, percent-decoded as far as that is possible.
    private static func query(of url: String) -> [Field] {
        guard let mark = url.unicodeScalars.firstIndex(of: "?") else { return [] }
        let query = url.suffix(afterScalarAt: mark).prefixScalars { $0 != "#" }
        return query.splitScalars(separator: "&").map { item in
            let parts = item.splitScalars(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { part in
                let text = part.replacingScalars("+", with: " ")
                return text.removingPercentEncoding ?? text
            }
            return Field(name: parts.first ?? "", value: parts.count > 1 ? parts[1] : "")
        }
    }
}

extension HAREntry.Timings {
    /// The phases, one after the other: their sum without `ssl` is the total.
    init(_ metrics: TransferMetrics) {
        var last = Duration.zero
        /// The time from the end of the phase before; −1 if this one did not take place.
        func phase(until end: Duration?) -> Double {
            guard let end else { return -1 }
            let limited = min(max(end, last), metrics.total)
            defer { last = limited }
            return (limited - last).milliseconds
        }
        let isNew = !metrics.reusedConnection
        blocked = phase(until: metrics.queueDuration)
        dns = phase(until: isNew ? metrics.nameLookupEnd : nil)
        let connected = phase(until: isNew ? metrics.connectEnd : nil)
        ssl = phase(until: isNew ? metrics.secureConnectionEnd : nil)
        connect = connected < 0 ? -1 : connected + max(ssl, 0)
        send = max(phase(until: metrics.requestStart), 0)
        wait = max(phase(until: metrics.responseStart ?? metrics.total), 0)
        receive = max(phase(until: metrics.total), 0)
    }
}

extension Duration {
    /// In milliseconds, with microseconds as the fraction.
    fileprivate var milliseconds: Double {
        Double(components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000) / 1000
    }
}
