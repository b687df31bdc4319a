// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The target to fuzz, named by CURLEW_FUZZ_TARGET. Built only by scripts/fuzz, with libFuzzer's `main`.
private let target: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["CURLEW_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget.named(name) else {
        FileHandle.standardError.write(Data("no target \(name); there are \(FuzzTarget.all.map(\.name))\n".utf8))
        exit(2)
    }
    return target
}()

/// Runs one input, in the form required by libFuzzer.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try target.check([UInt8](UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
        // libFuzzer saves the input of a process that aborts.
        FileHandle.standardError.write(Data("\(target.name): \(error)\n".utf8))
        abort()
    }
    return 0
}

private typealias Argument = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>, _ arguments: UnsafeMutablePointer<Argument>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

/// The name under which the package manager expects a program's entry point.
@_cdecl("curlew_fuzz_main")
public func fuzzMain(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    var count = count
    var arguments = arguments
    return runDriver(&count, &arguments, testOneInput)
}
