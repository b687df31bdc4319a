import Curlew

@main struct App {
    static func main() async throws {
        let manager = SessionManager()
        let text = try await manager.request("https://api.example.org/users").serializingString().value
        print(text)
    }
}
