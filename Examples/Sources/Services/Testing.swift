// SPDX-License-Identifier: Apache-2.0
import CurlewServices

/// The API for tests: it answers out of memory, and sends nothing.
struct TestingService: HTTPService {
    let apiURL: any URLConvertible = "birds.test"
    var hook: any ServiceHook { Answers() }

    /// Answers in place of the network.
    private struct Answers: ServiceHook {
        func onSchedule<Request: ServiceRequest>(_ request: Request, _ urlRequest: URLRequest) async -> Request.Result? {
            let answer = Birds.answer(
                method: urlRequest.httpMethod ?? "GET", path: urlRequest.url?.path ?? "",
                query: { name in
                    urlRequest.url.flatMap { URLComponents(url: $0, resolvingAgainstBaseURL: true) }?.queryItems?.first { $0.name == name }?
                        .value
                })
            // The request decodes what it would have got.
            return try? request.decode(answer.body)
        }
    }
}

/// What the API answers: the same for both services, so that the example shows what differs.
enum Birds {
    static let names = [
        "Eurasian curlew", "Whimbrel", "Ruff", "Dunlin", "Knot", "Snipe", "Woodcock", "Redshank", "Greenshank", "Turnstone",
    ]

    static func answer(method: String, path: String, query: (String) -> String?, body: Data = Data()) -> (status: Int, body: Data) {
        let parts = path.split(separator: "/").filter { $0 != "api" }
        switch (method, parts.count) {
        case ("GET", 1): return (200, json(page(Int(query("page") ?? "") ?? 1, of: Int(query("chunk") ?? "") ?? 10)))
        case ("GET", 2):
            guard let id = Int(parts[1]), names.indices.contains(id) else { return (404, Data()) }
            return (200, json(bird(id)))
        case ("POST", 1):
            let name = (try? JSONDecoder().decode([String: String].self, from: body))?["commonName"] ?? "?"
            return (201, json(Bird(id: names.count, commonName: name)))
        default: return (404, Data())
        }
    }

    private static func bird(_ id: Int) -> Bird { Bird(id: id, commonName: names[id]) }

    private static func page(_ number: Int, of chunk: Int) -> BirdPage {
        let from = min(max(number - 1, 0) * max(chunk, 1), names.count)
        let to = min(from + max(chunk, 1), names.count)
        return BirdPage(
            data: (from..<to).map(bird), page: number, from: from, to: to, chunk: chunk, totalCount: names.count,
            totalPageCount: (names.count + chunk - 1) / max(chunk, 1))
    }

    private static func json(_ value: some Encodable) -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return (try? encoder.encode(value)) ?? Data()
    }
}
