// SPDX-License-Identifier: Apache-2.0
// snippet: recorded
import Curlew
import CurlewHAR

func record(_ url: String, to folder: URL) async throws {
    let recorder = try HARRecorder(file: folder.appendingPathComponent("session.har"))
    var configuration = SessionConfiguration()
    configuration.eventMonitors.append(recorder)
    let manager = SessionManager(configuration: configuration)
    _ = try await manager.request(url).serializingData().value
    await manager.shutdown(gracePeriod: .seconds(5))

    recorder.close()
    let archive = try Data(contentsOf: folder.appendingPathComponent("session.har"))
    let page = folder.appendingPathComponent("session.html")
    try Waterfall(archive: archive).html.write(to: page, atomically: true, encoding: .utf8)
}
// end
