// SPDX-License-Identifier: Apache-2.0
import CurlewRequests
import Dispatch

/// Downloads in a process of its own, so that a test may kill it.
///
///     requests-probe URL FILE
@main
private enum Probe {
    private final class Download: BaseRequest, @unchecked Sendable {  // immutable
        private let url: String

        init(_ url: String) {
            self.url = url
        }

        override func requestUrl() -> String { url }
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { return }
        RequestsConfiguration.shared.callbackQueue = DispatchQueue(label: "probe")
        let request = Download(arguments[1])
        request.resumableDownloadPath = arguments[2]
        try await request.response()
    }
}
