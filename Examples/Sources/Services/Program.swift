// SPDX-License-Identifier: Apache-2.0
import CurlewServices
import DemoServer

/// Requests that are values, from a service for tests and from one with tokens, against a server in this process. Exit status 0 only if all
/// of it worked.
@main
enum Program {
    static func main() async {
        do {
            let guardian = Guardian()
            let server = try LoopbackServer { request, _ in guardian.answer(request) }
            defer { server.stop() }
            try await goThroughPages(of: TestingService(), "Testing")
            guard server.requestCount == 0 else { throw Unexpected(what: "the service for tests") }

            let url = server.url("/api")
            let production = ProductionService(apiURL: url, tokens: Tokens(apiURL: url))
            try await goThroughPages(of: production, "Production")
            print("Production: the token was renewed \(await production.tokens.renewals) times on the way.")
            guard await production.tokens.renewals > 1 else { throw Unexpected(what: "the renewal") }
            try await askForOne(production)
            try await askForManyAtOnce(production, guardian)
            try await pageByPage(production)
            print("All of it worked.")
        } catch {
            print("services: \(error)")
            exit(1)
        }
    }

    /// The same for any service: that is what they are for.
    private static func goThroughPages<Service: HTTPService>(of service: Service, _ name: String) async throws {
        let paginator = BirdsRequest().schedule(forPaginationWith: service, chunk: 2, paginatedType: BirdPage.self)
        var names: [String] = []
        for try await bird in paginator.elements { names.append(bird.commonName) }
        print("\(name): \(names.count) birds, the first is the \(names.first ?? "?").")
        guard names == Birds.names else { throw Unexpected(what: "the pages") }
    }

    private static func askForOne(_ service: ProductionService) async throws {
        let added = try await NewBirdRequest(commonName: "Godwit").schedule(with: service).value
        print("Added the \(added.commonName) as number \(added.id).")
        do {
            _ = try await BirdRequest(id: 4711).schedule(with: service).value
            throw Unexpected(what: "number 4711")
        } catch ProductionService.RequestError.noSuchBird {
            print("There is no bird with the number 4711.")
        }
    }

    /// All of them find the token expired, and share its renewal.
    private static func askForManyAtOnce(_ service: ProductionService, _ guardian: Guardian) async throws {
        let before = await service.tokens.renewals
        guardian.expire()
        let names = try await withThrowingTaskGroup(of: String.self) { group in
            for id in 0..<3 { group.addTask { try await BirdRequest(id: id).schedule(with: service).value.commonName } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        guard names.count == 3, await service.tokens.renewals > before else { throw Unexpected(what: "three at once") }
        print("Three at once: \(names.sorted().joined(separator: ", ")).")
    }

    /// A page whenever somebody wants one, as a list does that is scrolled.
    private static func pageByPage(_ service: ProductionService) async throws {
        let (ticks, ticker) = AsyncStream<Void>.makeStream()
        let pages = BirdsRequest().schedule(forPaginationWith: service, chunk: 5, paginatedType: BirdPage.self).connect(with: ticks)
        for try await page in pages {
            print("Page \(page.page) of \(page.totalPageCount): \(page.count) birds.")
            ticker.yield()
        }
    }

    private struct Unexpected: Error, CustomStringConvertible {
        let what: String
        var description: String { "\(what) went wrong" }
    }
}

/// The server: lets in whoever has a token, which holds for three requests.
final class Guardian: Sendable {
    /// How often each token may still be used.
    private let uses = _Lock<[Int]>([])

    func expire() {
        uses.withLock { uses in uses = uses.map { _ in 0 } }
    }

    func answer(_ request: ServerRequest) -> ServerResponse {
        if request.path == "/api/token" {
            let token = uses.withLock { uses in
                uses.append(3)
                return uses.count - 1
            }
            return .ok(#"{"access_token": "\#(token)"}"#, type: "application/json")
        }
        guard mayUse(request.header("Authorization") ?? "") else { return .status(401) }
        let answer = Birds.answer(method: request.method, path: request.path, query: { request.query($0) }, body: request.body)
        return ServerResponse(
            status: answer.status, headers: [ServerField("Content-Type", "application/json")], body: .data(answer.body))
    }

    private func mayUse(_ authorization: String) -> Bool {
        uses.withLock { uses in
            guard let token = Int(authorization.dropFirst("Bearer ".count)), uses.indices.contains(token), uses[token] > 0 else {
                return false
            }
            uses[token] -= 1
            return true
        }
    }
}
