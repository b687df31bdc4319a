// SPDX-License-Identifier: Apache-2.0
import CurlewCore
import CurlewEncoding
import CurlewHTTP
import CurlewRequests

/// Signs a user up. A class for each call of the API: it says where the call goes, with what, and what has to come back.
final class SignUp: BaseRequest, @unchecked Sendable {  // immutable
    private let name: String

    init(name: String) {
        self.name = name
    }

    override func requestUrl() -> String { "users" }
    override func requestMethod() -> HTTPMethod { .post }
    override func requestArgument() -> Any? { ["name": name] }
    override func requestSerializerType() -> RequestSerializerType { .json }
    override func jsonValidator() -> Any? { ["id": Int.self] }

    /// The new user's number, once the request has succeeded.
    var userId: Int? { (responseJSONObject as? [String: Any])?["id"] as? Int }
}

/// What is known of a user; asked for again twice if the server is in trouble.
final class UserInfo: BaseRequest, @unchecked Sendable {  // immutable
    private let id: Int

    init(id: Int) {
        self.id = id
    }

    override func requestUrl() -> String { "users/\(id)" }
    override func jsonValidator() -> Any? { ["id": Int.self, "name": String.self] as [String: Any] }
    override func requestRetryCount() -> Int { 2 }

    var name: String? { (responseJSONObject as? [String: Any])?["name"] as? String }
}

/// A user's picture, from the CDN.
final class Picture: BaseRequest, @unchecked Sendable {  // immutable
    private let id: Int

    init(id: Int) {
        self.id = id
    }

    override func requestUrl() -> String { "pictures/\(id)" }
    override func useCDN() -> Bool { true }
    override func responseSerializerType() -> ResponseSerializerType { .http }
}

/// Tells somebody of a user and the picture.
final class Announcement: BaseRequest, @unchecked Sendable {  // immutable
    private let text: String

    init(text: String) {
        self.text = text
    }

    override func requestUrl() -> String { "announcements" }
    override func requestMethod() -> HTTPMethod { .post }
    override func requestArgument() -> Any? { ["text": text] }
    override func responseSerializerType() -> ResponseSerializerType { .http }
}
