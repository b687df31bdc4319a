// SPDX-License-Identifier: Apache-2.0
import CurlewAuth
import CurlewCore
import CurlewEncoding
import CurlewTestSupport
import Dispatch

/// A process that shares a file of tokens: `curlew-auth-probe URL FILE COUNT`, with the URL of the tests' authorization server.
///
/// Waits for a line of input, sends COUNT requests at once, and prints how many of them were `right`.
@main
enum AuthProbe {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let count = Int(arguments[3]) else { exit(64) }
        var configuration = SessionConfiguration()
        configuration.callbackQueue = DispatchQueue(label: "probe")
        configuration.proxy = .none
        let metadata = OAuthServerMetadata(tokenEndpoint: arguments[1] + "/token")
        let client = OAuthClient(id: "app", server: .metadata(metadata), configuration: configuration)
        let authenticator = OAuthAuthenticator(client, store: .file(URL(fileURLWithPath: arguments[2])))
        let manager = SessionManager(
            configuration: configuration, interceptor: AuthenticationInterceptor(authenticator: authenticator))
        print("ready=1")
        fflush(nil)
        _ = readLine()
        let right = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<count {
                group.addTask { (try? await manager.request(arguments[1] + "/api").validate().serializingData().value) != nil }
            }
            var right = 0
            for await isRight in group where isRight { right += 1 }
            return right
        }
        print("right=\(right)")
    }
}
