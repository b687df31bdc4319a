/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of TLS, and certificates made for tests, from the OpenSSL that is loaded into the process, or else is installed. Nothing
   is linked: programs without OpenSSL get a reason in place of a server. */
#ifndef CLOOPBACK_H
#define CLOOPBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whether OpenSSL 1.1.1 or later is there, as libssl in the process or on the system. Thread-safe. */
bool cloopback_has_openssl(void);

/* What a certificate is to contain. Texts are NUL-terminated and borrowed. */
struct cloopback_certificate {
    const char *common_name;
    const char *names;        /* for the subject's alternative names, as "DNS:localhost,IP:127.0.0.1"; NULL for none */
    const char *usage;        /* the extended key usage, as "serverAuth"; NULL for none */
    bool is_authority;
    long valid_from;          /* seconds from now, negative for the past */
    long valid_until;         /* seconds from now */
    unsigned long long serial;
    const char *issuer;       /* the issuer's certificate in PEM; NULL for a self-signed one */
    const char *issuer_key;   /* its key in PEM */
};

/* Creates a key on the curve P-256 and a certificate for it, both in PEM, to be freed by free(). Returns NULL, or the reason of a failure, a
   static text. */
const char *cloopback_make_certificate(const struct cloopback_certificate *certificate, char **certificate_pem, char **key_pem);

/* The settings of a server. */
struct cloopback_tls {
    const char *chain;            /* the certificates to send in PEM, the server's own first */
    const char *key;              /* its key in PEM */
    const char *client_authority; /* in PEM: client certificates of it are required; NULL for none */
    bool client_may_refuse;       /* whether they are requested only */
    int minimum_version;          /* 0x0303 for TLS 1.2, 0x0304 for 1.3; 0 for no limit */
    int maximum_version;
};

/* Creates a server's context; NULL with a reason, a static text. To be freed by cloopback_tls_free. */
void *cloopback_tls_new(const struct cloopback_tls *settings, const char **reason);
void cloopback_tls_free(void *context);

/* Performs the handshake on a connected, blocking socket, which stays the caller's. Returns the session; NULL with a reason, which is copied
   into the buffer. Blocks SIGPIPE for the calling thread, on which the other functions have to be called. */
void *cloopback_tls_accept(void *context, int socket, char *reason, size_t length);

/* As recv(2) and send(2): the number of bytes; 0 at the end of the stream, -1 if the connection is broken. */
ssize_t cloopback_tls_read(void *session, void *bytes, size_t length);
ssize_t cloopback_tls_write(void *session, const void *bytes, size_t length);

/* Sends close_notify. */
void cloopback_tls_close(void *session);
void cloopback_tls_end(void *session);

/* The version, such as "TLSv1.3"; whether the session was resumed; the name that the client asked for, or NULL. */
const char *cloopback_tls_version(const void *session);
bool cloopback_tls_is_resumed(const void *session);
const char *cloopback_tls_server_name(const void *session);

/* The common name of the client's certificate; false without one. */
bool cloopback_tls_client_name(const void *session, char *name, size_t length);

#endif
