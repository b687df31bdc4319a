// SPDX-License-Identifier: Apache-2.0
import CurlewTestSupport
import CurlewTesting
import CurlewURLSession
import Testing

@testable import CurlewCore

/// `allowsCellularAccess` of configurations and requests, for tasks of all kinds.
@Suite(.timeLimit(.minutes(1))) struct CellularTaskTests {
    private struct Modem: InterfaceProvider {
        func routedInterfaces() -> [NetworkInterface] { [NetworkInterface(name: "wwan0", isCellular: true)] }
    }

    /// On a transport without a response: what is sent fails with another error.
    private func session(allowsCellularAccess: Bool) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.allowsCellularAccess = allowsCellularAccess
        configuration.curlew.interfaces = Modem()
        return URLSession(mock: MockTransport(), configuration: configuration)
    }

    private func request(_ url: String, allowsCellularAccess: Bool) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: url)))
        request.allowsCellularAccess = allowsCellularAccess
        return request
    }

    // U2.4, U2.6
    @Test(arguments: [(false, true), (true, false)]) func `tasks of all kinds keep off cellular interfaces`(
        sessionAllows: Bool, requestAllows: Bool
    ) async throws {
        let session = session(allowsCellularAccess: sessionAllows)
        defer { session.invalidateAndCancel() }
        let request = try request("https://api.test/", allowsCellularAccess: requestAllows)
        let data = await #expect(throws: URLError.self) { try await session.data(for: request) }
        #expect(data?.code == .dataNotAllowed)
        let socket = session.webSocketTask(with: try self.request("wss://api.test/", allowsCellularAccess: requestAllows))
        socket.resume()
        let received = await #expect(throws: URLError.self) { try await socket.receive() }
        #expect(received?.code == .dataNotAllowed)
        guard !sessionAllows else { return }
        let stream = session.streamTask(withHostName: "api.test", port: 7)
        stream.resume()
        let written = await #expect(throws: URLError.self) { try await stream.write(Data("one".utf8), timeout: 0) }
        #expect(written?.code == .dataNotAllowed)
    }
}
