/* SPDX-License-Identifier: Apache-2.0 */
/* The system's hiredis; built with the trait Redis only. Of it the parser of replies is used. */
#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H
#include <hiredis/hiredis.h>

/* The most elements of an array. The length that a server announces is allocated before the first element has arrived (CVE-2021-32765
   is an overflow of that length). */
#define CHIREDIS_LONGEST_ARRAY 1048576

/* The most levels of arrays in arrays, far more than any command has. Values are copied and freed by recursion, and hiredis from 1.0 on
   does not limit the levels itself. */
#define CHIREDIS_DEEPEST_ARRAY 32

#if HIREDIS_MAJOR >= 1
typedef size_t chiredis_count;
#else
typedef int chiredis_count;
#endif

/* Creates an array of a bounded length and level; NULL is an error of the parser. The reader's private data are the functions of hiredis. */
static inline void *chiredis_create_array(const redisReadTask *task, chiredis_count elements) {
    const redisReplyObjectFunctions *plain = (const redisReplyObjectFunctions *)task->privdata;
    int level = 0;
    for(const redisReadTask *outer = task->parent; outer; outer = outer->parent)
        level++;
    return elements > CHIREDIS_LONGEST_ARRAY || level >= CHIREDIS_DEEPEST_ARRAY ? NULL : plain->createArray(task, elements);
}

/* Creates a parser with bounded arrays. The functions are filled in, and have to outlive it. */
static inline redisReader *chiredis_create_reader(redisReplyObjectFunctions *functions) {
    redisReader *reader = redisReaderCreate();
    if(!reader)
        return NULL;
    *functions = *reader->fn;
    functions->createArray = chiredis_create_array;
    reader->privdata = reader->fn;
    reader->fn = functions;
    return reader;
}
#endif
