// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewTestSupport

@testable import CurlewRequests

/// Records the callbacks of a batch or chain and its requests.
final class GroupLog: RequestAccessory, BatchRequestDelegate, ChainRequestDelegate {
    let log = Log()
    var all: [String] { log.all.map { $0.replacing(" @callback", with: "") } }

    func note(_ event: String) { log.note(event) }
    func requestWillStart(_ request: any RunnableRequest) { note("willStart") }
    func requestWillStop(_ request: any RunnableRequest) { note("willStop") }
    func requestDidStop(_ request: any RunnableRequest) { note("didStop") }
    func batchRequestFinished(_ batchRequest: BatchRequest) { note("finished") }
    func batchRequestFailed(_ batchRequest: BatchRequest) { note("failed") }
    func chainRequestFinished(_ chainRequest: ChainRequest) { note("finished") }
    func chainRequestFailed(_ chainRequest: ChainRequest, failedStep: ChainStep) { note("failed") }
}

/// A server that holds requests for `held` until the gate opens.
struct GroupStage {
    let stage: Stage
    let gate = Gate()

    init() throws {
        stage = try Stage { [gate] request, _ in
            if request.path.hasPrefix("/held") { _ = gate.wait() }
            if request.path.hasPrefix("/bad") { return .status(500) }
            return Stage.json("{\"path\": \"\(request.path)\"}")
        }
    }

    func request(_ path: String) -> SampleRequest { SampleRequest(stage, path) }

    func requests(_ paths: String...) -> [SampleRequest] { paths.map { request($0) } }

    /// The paths in the order in which the server received them.
    var asked: [String] { stage.server.requests.map { String($0.path.dropFirst()) } }
}

extension BaseRequest {
    /// The request path as reported in the server's response.
    var answeredPath: String? { (responseJSONObject as? [String: Any])?["path"] as? String }
}

/// Starts a group and awaits its end.
func run(_ group: RequestGroup) async -> RequestEnding {
    await withTrackedContinuation { continuation in
        group.start { continuation.resume(returning: $0) }
    }
}
