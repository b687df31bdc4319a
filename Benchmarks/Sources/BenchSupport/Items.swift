// SPDX-License-Identifier: Apache-2.0

/// One of the 577 objects of `64k.json`.
public struct Item: Decodable, Sendable {
    /// Its number.
    public let id: Int
    let name: String
    let email: String
    let price: Double
    let isActive: Bool
    let tags: [String]
}

/// The object of `1k.json`.
public struct Profile: Decodable, Sendable {
    /// Its number.
    public let id: Int
    let name: String
    let email: String
    let biography: String
    let isActive: Bool
    let score: Double
    let languages: [String]
    let recent: [Item]
    let address: Address

    struct Address: Decodable, Sendable {
        let street: String
        let city: String
        let postalCode: String
    }
}
