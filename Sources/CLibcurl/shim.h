/* SPDX-License-Identifier: Apache-2.0 */
/* The system's libcurl, found by pkg-config. A system library target can carry no code; CCurlew stands on top of it. */
#ifndef CLIBCURL_SHIM_H
#define CLIBCURL_SHIM_H
#include <curl/curl.h>
#endif
