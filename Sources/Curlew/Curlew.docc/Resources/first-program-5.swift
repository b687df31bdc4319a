import Curlew
import Foundation

struct User: Codable, Sendable {
    let id: Int
    let name: String
}

struct Users {
    let manager: SessionManager

    func all() async throws -> [User] {
        let options = RequestOptions(deadline: .seconds(10))
        return try await manager.request("https://api.example.org/users", interceptor: RetryPolicy(), options: options)
            .validate().serializingDecodable([User].self).value
    }

    func saveArchive(to file: URL) async throws {
        _ = try await manager.download(
            "https://api.example.org/archive.tar", interceptor: RetryPolicy(), to: file,
            options: [.resumePreviousDownload, .removePreviousFile]
        )
        .downloadProgress(queue: .global()) { print("\(Int($0.fractionCompleted * 100)) %") }
        .validate().serializingURL().value
    }
}

@main struct App {
    static func main() async {
        let users = Users(manager: SessionManager())
        do {
            for user in try await users.all() { print(user.id, user.name) }
            try await users.saveArchive(to: URL(fileURLWithPath: "archive.tar"))
        } catch CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(let code), _) {
            print("the server refused, with status \(code)")
        } catch {
            print("error: \(error)")
        }
    }
}
