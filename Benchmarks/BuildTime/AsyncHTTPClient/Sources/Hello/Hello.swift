// SPDX-License-Identifier: Apache-2.0
import AsyncHTTPClient

@main
enum Hello {
    static func main() async throws {
        let url = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1"
        let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(60))
        print(try await response.body.collect(upTo: 64 << 20).readableBytes)
    }
}
