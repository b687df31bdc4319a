// SPDX-License-Identifier: Apache-2.0
// snippet: imports
import Curlew
import CurlewRequests
// end

// The code of ComingFromYTKNetwork.md, in the same form as Snippets.swift, with the guide's imports and no others; `GuideTests` runs it.

enum RequestsGuide {
    // snippet: requests
    final class UserRequest: CachedRequest, @unchecked Sendable {
        let id: Int
        init(id: Int) {
            self.id = id
            super.init()
        }
        override func requestUrl() -> String { "users/\(id)" }
        override func cacheTimeInSeconds() -> Int { 180 }
        override func jsonValidator() -> Any? { ["nick": String.self] }
    }

    final class RegisterRequest: BaseRequest, @unchecked Sendable {
        let nick: String
        init(nick: String) {
            self.nick = nick
            super.init()
        }
        override func requestUrl() -> String { "users" }
        override func requestMethod() -> HTTPMethod { .post }
        override func requestSerializerType() -> RequestSerializerType { .json }
        override func requestArgument() -> Any? { ["nick": nick] }
        override func requestTimeoutInterval() -> TimeInterval { 20 }
    }
    // end

    static func use() async throws -> (user: Any?, status: Int) {
        // snippet: use
        RequestsConfiguration.shared.baseUrl = "https://api.example.org/v1/"
        let user = try await UserRequest(id: 1).response().responseJSONObject
        let status = try await RegisterRequest(nick: "curlew").response().responseStatusCode
        // end
        return (user, status)
    }
}
