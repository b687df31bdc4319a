// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import Testing

@testable import CurlewTransport

@Suite(.timeLimit(.minutes(1))) struct TransferRequestTests {
    @Test func copiesAreValues() {
        let original = TransferRequest(url: "http://a.test/", headers: ["A": "1"])
        var copy = original
        copy.url = "http://b.test/"
        copy.method = .post
        copy.headers["A"] = "2"
        copy.body = DataBody(Data("body".utf8))
        copy.options.maximumHeadSize = 7
        copy.authentication = .negotiate
        copy.mayPause = true
        copy.expectsLargeBody = true
        copy.cachePolicy = .reloadIgnoringLocalCacheData
        copy.handlesCookies = false
        copy.mainDocumentURL = "http://c.test/"
        copy.allowsCellularAccess = false

        #expect(original.url == "http://a.test/" && original.method == .get && original.headers == ["A": "1"] && original.body == nil)
        #expect(original.options.maximumHeadSize == TransferOptions().maximumHeadSize && original.authentication == nil)
        #expect(!original.mayPause && !original.expectsLargeBody && original.cachePolicy == .useProtocolCachePolicy)
        #expect(original.handlesCookies && original.mainDocumentURL == nil && original.allowsCellularAccess)

        #expect(copy.url == "http://b.test/" && copy.method == .post && copy.headers == ["A": "2"])
        #expect((copy.body as? DataBody)?.data == Data("body".utf8))
        #expect(copy.options.maximumHeadSize == 7 && copy.authentication != nil)
        #expect(copy.mayPause && copy.expectsLargeBody && copy.cachePolicy == .reloadIgnoringLocalCacheData)
        #expect(!copy.handlesCookies && copy.mainDocumentURL == "http://c.test/" && !copy.allowsCellularAccess)
    }
}
