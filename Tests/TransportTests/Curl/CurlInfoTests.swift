// SPDX-License-Identifier: Apache-2.0
import CurlewTransport
import Testing

@Suite struct CurlInfoTests {
    @Test(
        "versions before 7.88.0 are rejected",
        arguments: [
            (0x075700, "7.87.0", "libcurl 7.87.0 is too old: Curlew needs version 7.88.0 or later"), (0x075800, "7.88.0", nil),
            (0x080000, "8.0.0", nil),
        ] as [(Int, String, String?)])
    func oldVersions(number: Int, name: String, rejection: String?) {
        #expect(CurlInfo.rejection(ofVersion: number, named: name) == rejection)
    }

    @Test("the libcurl in use is supported") func current() {
        let curl = CurlInfo.current
        #expect(CurlInfo.rejection(ofVersion: curl.versionNumber, named: curl.version) == nil)
    }
}
