// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewTesting

/// The recorded exchanges of `--replay`, of which those respond whose request had the same body.
struct Replay {
    /// The request differs from each that was recorded for its URL, or a response from the recorded one.
    struct Difference: Error {
        let text: String
    }

    private let cassette: Cassette
    /// What responds without a network.
    let manager: SessionManager

    /// - Parameters:
    ///   - path: the folder.
    ///   - body: that of the request, with its type.
    init(_ path: String, _ plan: RequestPlan, _ body: BodyDifference.Body, _ configuration: SessionConfiguration) throws {
        guard access(path, R_OK) == 0 else { throw FileFailure(path: path, code: errno) }
        cassette = try Self.matching(Cassette(directory: URL(fileURLWithPath: path, isDirectory: true)), plan, body)
        manager = SessionManager(
            configuration: configuration, transport: try ReplayTransport(cassette, mode: .none, matching: .lenient))
    }

    private static func matching(_ cassette: Cassette, _ plan: RequestPlan, _ body: BodyDifference.Body) throws -> Cassette {
        // What the cassette hides is hidden before it is compared.
        let type = body.type.map { HTTPHeaders([HTTPHeader(name: "Content-Type", value: $0)]) } ?? [:]
        let asked = StoredExchange(
            method: plan.method.rawValue, url: plan.url, headers: type, body: body.bytes, outcome: .failure(.other, message: ""))
        guard let asked = Cassette([asked], redaction: cassette.redaction).exchanges.first else { return cassette }
        let place = Self.place(asked)
        var (kept, different): ([StoredExchange], [String]) = ([], [])
        var isFound = false
        for exchange in cassette.exchanges {
            guard Self.place(exchange) == place else {
                kept.append(exchange)
                continue
            }
            let recorded = BodyDifference.Body(bytes: exchange.body, type: exchange.headers["Content-Type"])
            if let difference = BodyDifference.text(recorded: recorded, present: .init(bytes: asked.body, type: body.type)) {
                different.append(difference)
            } else {
                kept.append(exchange)
                isFound = true
            }
        }
        guard let first = different.first else { return cassette }
        guard isFound else { throw Difference(text: "the request's body is not the one that was recorded: \(first)") }
        return Cassette(kept, redaction: cassette.redaction)
    }

    /// Method and URL, with the query's items in order.
    private static func place(_ exchange: StoredExchange) -> [String] {
        let parts = URLComponents(string: exchange.url)
        let items = (parts?.percentEncodedQuery ?? "").splitScalars(separator: "&").map(String.init).sorted()
        let origin = HTTPOrigin(url: exchange.url).map { "\($0.scheme)://\($0.host):\($0.port)" } ?? exchange.url
        let path = parts?.percentEncodedPath ?? ""
        return [exchange.method, origin, path.isEmpty ? "/" : path] + items
    }

    // MARK: --diff

    /// A complete response.
    struct Response {
        let status: Int
        let body: BodyDifference.Body
    }

    /// Compares a response with the recorded one.
    ///
    /// - Parameter request: the same request to what was recorded.
    func compare(_ response: Response, with request: DataRequest) async throws {
        var bytes = Data()
        for try await piece in request.bodyStream() { bytes += piece }
        guard let head = request.response else { throw Difference(text: "no response was recorded") }
        let recorded = Response(
            status: head.statusCode, body: .init(bytes: bytes, type: head.value(forHTTPHeaderField: "Content-Type")))
        let present = hidden(response)
        let status = recorded.status == present.status ? nil : "status: \(BodyDifference.pair("\(recorded.status)", "\(present.status)"))"
        let found = [status, BodyDifference.text(recorded: recorded.body, present: present.body)].compactMap { $0 }
        guard found.isEmpty else { throw Difference(text: "the response differs: \(found.joined(separator: "; "))") }
    }

    /// A response without what the cassette hides.
    private func hidden(_ response: Response) -> Response {
        let type = response.body.type
        let headers = type.map { HTTPHeaders([HTTPHeader(name: "Content-Type", value: $0)]) } ?? [:]
        let exchange = StoredExchange(
            method: "GET", url: "http://localhost/",
            outcome: .response(status: response.status, headers: headers, body: response.body.bytes, trailers: [:]))
        guard case .response(_, _, let body, _)? = Cassette([exchange], redaction: cassette.redaction).exchanges.first?.outcome else {
            return response
        }
        return Response(status: response.status, body: .init(bytes: body, type: type))
    }
}
