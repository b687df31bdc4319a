// SPDX-License-Identifier: Apache-2.0
import Foundation

#if os(Linux)
/// The type of datagram sockets.
let datagram = Int32(SOCK_DGRAM.rawValue)
#else
/// The type of datagram sockets.
let datagram = SOCK_DGRAM
#endif
