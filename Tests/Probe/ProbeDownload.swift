// SPDX-License-Identifier: Apache-2.0
import CurlewRequests
import Dispatch

/// A download with CurlewRequests, in a process that a test kills; without a path, an ordinary request.
final class ProbeDownload: BaseRequest, @unchecked Sendable {  // immutable
    private let url: String

    init(_ url: String, to path: String?, _ agent: RequestAgent = makeAgent()) {
        self.url = url
        super.init()
        self.agent = agent
        resumableDownloadPath = path
    }

    override func requestUrl() -> String { url }
    override func responseSerializerType() -> ResponseSerializerType { .http }

    private static func makeAgent() -> RequestAgent {
        let configuration = RequestsConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "probe")
        return RequestAgent(configuration: configuration)
    }

    static func askThrice(_ url: String) async throws {
        let agent = makeAgent()
        for _ in 0..<2 { try await ProbeDownload(url, to: nil, agent).response() }
        var session = RequestsConfiguration.defaultSessionConfiguration
        session.cookieStorage = nil
        agent.configuration.sessionConfiguration = session
        try await ProbeDownload(url, to: nil, agent).response()
    }
}
