// SPDX-License-Identifier: Apache-2.0
import CurlewServices

/// A bird, as the API has it.
struct Bird: Codable, Sendable {
    let id: Int
    let commonName: String
}

/// A page of birds: where it stands comes along, in snake case.
struct BirdPage: PaginatedData, Codable {
    let data: [Bird]
    let page: Int
    let from: Int
    let to: Int
    let chunk: Int
    let totalCount: Int
    let totalPageCount: Int
}

// The requests say what they ask for and what comes of it, and nothing of where the API is, or who asks.

/// All birds.
struct BirdsRequest: JSONServiceRequest {
    typealias Result = [Bird]
    var routes: HTTPRoute { "birds" }
}

/// A bird.
struct BirdRequest: JSONServiceRequest {
    typealias Result = Bird
    let id: Int
    var routes: HTTPRoute { ["birds", id] }
}

/// Adds a bird.
struct NewBirdRequest: JSONServiceRequest {
    typealias Result = Bird
    let commonName: String
    var method: HTTPMethod { .post }
    var routes: HTTPRoute { "birds" }
    var body: any HTTPBody { HTTPData.JSON(["commonName": commonName]) }
    var acceptedStatusCodes: ClosedRange<Int> { 201...201 }
}

/// A new token. The credentials are the request's own: the service's token has expired when it is asked for.
struct TokenRequest: JSONServiceRequest {
    struct Token: Decodable, Sendable { let accessToken: String }

    typealias Result = Token
    var method: HTTPMethod { .post }
    var routes: HTTPRoute { "token" }
    var body: any HTTPBody { HTTPData.URLEncoded(["grant_type": "refresh_token", "refresh_token": "a secret"]) }
}
