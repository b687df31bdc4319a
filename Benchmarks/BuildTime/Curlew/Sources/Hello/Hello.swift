// SPDX-License-Identifier: Apache-2.0
import Curlew
import Foundation

@main
enum Hello {
    static func main() async throws {
        let url = CommandLine.arguments.dropFirst().first ?? "http://127.0.0.1"
        print(try await request(url).serializingData().value.count)
    }
}
