// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewServices
import CurlewTestSupport

/// A page of numbers with the position that servers report.
struct NumberPage: PaginatedData, Codable {
    var data: [Int]
    var page: Int
    var from: Int
    var to: Int
    var chunk: Int
    var totalCount: Int
    var totalPageCount: Int
}

/// The same for an API whose first page is number 0.
struct ZeroBasedPage: PaginatedData, Codable {
    var data: [Int]
    var page: Int
    var from: Int
    var to: Int
    var chunk: Int
    var totalCount: Int
    var totalPageCount: Int
    var zeroBasedPageIndex: Bool { true }
}

/// A paginated request for numbers.
struct NumbersRequest: JSONServiceRequest {
    typealias Result = [Int]
    var routes: HTTPRoute = "numbers"
    var header: HTTPHeaders = [:]
    var query: HTTPQuery = [:]
}

/// Serves the numbers 0 to 6 in pages.
enum NumberServer {
    static func make(beforeResponse: @escaping @Sendable (ServerRequest, ServerConnection) -> Void = { _, _ in }) throws -> LoopbackServer {
        try LoopbackServer { request, connection in
            beforeResponse(request, connection)
            switch request.path {
            case "/numbers", "/zero": return try counted(request)
            case "/offset":
                return try .json(numbers(from: integer(request, "offset"), count: integer(request, "limit")))
            case "/cursor": return try cursor(request)
            case "/link": return try linked(request)
            case "/plain": return try .json(numbers(from: (integer(request, "page") - 1) * 3, count: 3))
            default: return .status(404)
            }
        }
    }

    private static func integer(_ request: ServerRequest, _ name: String) -> Int { request.query(name).flatMap { Int($0) } ?? 0 }

    private static func numbers(from: Int, count: Int) -> [Int] { Array((0..<7).dropFirst(from).prefix(count)) }

    private static func counted(_ request: ServerRequest) throws -> ServerResponse {
        let (page, chunk) = (integer(request, "page"), integer(request, "chunk"))
        let from = (page - (request.path == "/zero" ? 0 : 1)) * chunk
        let data = numbers(from: from, count: chunk)
        let pages = (7 + chunk - 1) / chunk
        return try .json(
            NumberPage(
                data: data, page: page, from: from, to: from + data.count, chunk: chunk, totalCount: 7, totalPageCount: pages))
    }

    private static func cursor(_ request: ServerRequest) throws -> ServerResponse {
        let from = request.query("cursor").flatMap { Int($0.dropFirst(2)) } ?? 0
        return try .json(CursorPage(items: numbers(from: from, count: 3), next: from + 3 < 7 ? "c/\(from + 3)" : nil))
    }

    private static func linked(_ request: ServerRequest) throws -> ServerResponse {
        let page = request.query("page").flatMap { Int($0) } ?? 1
        var response = try ServerResponse.json(numbers(from: (page - 1) * 3, count: 3))
        if page < 3 {
            let link = "</link?page=1>; rel=first, <?page=\(page + 1)>; rel=\"next\""
            response.headers.append(ServerField("Link", link))
        }
        return response
    }
}

/// A page with the token of the next one.
struct CursorPage: Codable, Sendable {
    var items: [Int]
    var next: String?
}
