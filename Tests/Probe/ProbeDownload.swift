// SPDX-License-Identifier: Apache-2.0
import CurlewRequests
import Dispatch

/// A download that is an object, in a process that a test kills.
final class ProbeDownload: BaseRequest, @unchecked Sendable {  // immutable
    private let url: String

    init(_ url: String, to path: String) {
        self.url = url
        super.init()
        let configuration = RequestsConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "probe")
        agent = RequestAgent(configuration: configuration)
        resumableDownloadPath = path
    }

    override func requestUrl() -> String { url }
}
