import Curlew

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
}

@main struct App {
    static func main() async {
        let users = Users(manager: SessionManager())
        do {
            for user in try await users.all() { print(user.id, user.name) }
        } catch CurlewError.responseValidationFailed(reason: .unacceptableStatusCode(let code), _) {
            print("the server refused, with status \(code)")
        } catch {
            print("error: \(error)")
        }
    }
}
