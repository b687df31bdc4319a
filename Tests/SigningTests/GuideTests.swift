// SPDX-License-Identifier: Apache-2.0
import CurlewHTTP
import CurlewSigning
import CurlewTestSupport
import Testing

@Suite struct GuideTests {
    private static let credentials = AWSCredentials(accessKeyID: "id", secretAccessKey: "key", sessionToken: "token")

    @Test func `every block of the article is compiled, and everything compiled for it is in it`() throws {
        let here = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let page = here.appendingPathComponent("../../Sources/Signing/CurlewSigning.docc/CurlewSigning.md")
        #expect(try DocumentedCode.differences(page: page, sources: here.appendingPathComponent("Guide.swift")) == [])
    }

    @Test func `the article's functions sign`() async throws {
        #expect(makeManager(from: Self.credentials).session.configuration.signer is AWSSigner)
        let url = try await link(to: "a%20b", from: Self.credentials)
        #expect(url.hasBytePrefix("https://bucket.s3.eu-central-1.amazonaws.com/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256&"))
        let headers = try publish(Data("{}".utf8), to: "https://sqs.eu-central-1.amazonaws.com/", with: Self.credentials)
        #expect(headers["Authorization"]?.containsScalars(of: "content-type;host;x-amz-date;x-amz-security-token;x-amz-target") == true)
        let (fields, body) = try encoded([Data("abc".utf8), Data("de".utf8)], to: url, with: Self.credentials)
        #expect(fields["X-Amz-Content-Sha256"] == "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
        #expect(body.count == 263)
    }
}
