// SPDX-License-Identifier: Apache-2.0
import Foundation

#if os(Linux)
/// Sockets of datagrams.
let datagram = Int32(SOCK_DGRAM.rawValue)
#else
/// Sockets of datagrams.
let datagram = SOCK_DGRAM
#endif
