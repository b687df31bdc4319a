// SPDX-License-Identifier: Apache-2.0
import Curlew
import CurlewServices

// The code of WhichAPI.md but that for URLSession, region by region. `WhichAPITests` checks that, and runs the code.

// snippet: await
func name(of id: Int, token: String, with manager: SessionManager) async throws -> String {
    let url = "https://api.example.org/users/\(id)"
    let options = RequestOptions(deadline: .seconds(10))  // for all attempts together
    return try await manager.request(url, headers: [.authorization(bearerToken: token)], options: options)
        .validate()
        .serializingDecodable(User.self)
        .value.name
}
// end

// snippet: closure
func loadName(
    of id: Int, token: String, with manager: SessionManager, completion: @escaping @Sendable (Result<String, any Error>) -> Void
) {
    manager.request("https://api.example.org/users/\(id)", headers: [.authorization(bearerToken: token)])
        .validate()
        .responseDecodable(of: User.self, queue: .global()) { response in
            completion(response.result.map(\.name))
        }
}
// end

// snippet: values
struct UserByID: JSONServiceRequest {
    typealias Result = User
    let id: Int
    var routes: HTTPRoute { ["users", id] }
}

struct UserAPI: HTTPService {
    let sessionManager: SessionManager
    let token: String
    var apiURL: any URLConvertible { "api.example.org" }
    var header: HTTPHeaders { [.authorization(bearerToken: token)] }
}

func name(of id: Int, in api: UserAPI) async throws -> String {
    try await UserByID(id: id).schedule(with: api).value.name
}
// end
