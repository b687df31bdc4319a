// SPDX-License-Identifier: Apache-2.0
import BenchSupport

@main
enum Program {
    static func main() { BenchProgram.main(Client.self, name: "curlew") }
}
