// SPDX-License-Identifier: Apache-2.0
import CurlewURLSession
import Foundation

// The code of WhichAPI.md for URLSession.

// snippet: url-session
func name(of id: Int, token: String, in session: URLSession) async throws -> String {
    guard let url = URL(string: "https://api.example.org/users/\(id)") else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
    let (data, response) = try await session.data(for: request)
    guard let status = (response as? HTTPURLResponse)?.statusCode, 200..<300 ~= status else {
        throw URLError(.badServerResponse)
    }
    return try JSONDecoder().decode(User.self, from: data).name
}
// end
