import Curlew

struct User: Codable, Sendable {
    let id: Int
    let name: String
}

struct Users {
    let manager: SessionManager

    func all() async throws -> [User] {
        try await manager.request("https://api.example.org/users").validate().serializingDecodable([User].self).value
    }
}

@main struct App {
    static func main() async throws {
        let users = Users(manager: SessionManager())
        for user in try await users.all() { print(user.id, user.name) }
    }
}
