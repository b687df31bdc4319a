import Curlew
import CurlewTesting
import Testing

@testable import App

@Test func `a busy server is asked again`() async throws {
    let mock = MockTransport(clock: VirtualClock(.automatic))
    mock.stub(.get, "/users", respond: .status(503), .json([User(id: 7, name: "Ada")]))
    let users = Users(manager: SessionManager(mock: mock))
    #expect(try await users.all().map(\.name) == ["Ada"])
    #expect(mock.requests.count == 2)
}
