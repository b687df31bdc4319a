/* SPDX-License-Identifier: Apache-2.0 */
/* The system's hiredis; built with the trait Redis only. Of it the parser of replies is used. */
#ifndef CHIREDIS_SHIM_H
#define CHIREDIS_SHIM_H
#include <hiredis/hiredis.h>

/* The most elements of a response's arrays together. The length that a server announces is allocated before the first element has arrived
   (CVE-2021-32765 is an overflow of that length), for each array in an array again. */
#define CHIREDIS_MOST_ELEMENTS 1048576

/* The most levels of arrays in arrays, far more than any command has. Values are copied and freed by recursion, and hiredis from 1.0 on
   does not limit the levels itself. */
#define CHIREDIS_DEEPEST_ARRAY 32

#if HIREDIS_MAJOR >= 1
typedef size_t chiredis_count;
#else
typedef int chiredis_count;
#endif

/* The functions that make a reader's values. */
typedef struct {
    redisReplyObjectFunctions own;
    const redisReplyObjectFunctions *plain;
    /* How many elements the arrays of the response have so far. */
    size_t elements;
} chiredis_functions;

/* Creates an array of a bounded length and level; NULL is an error of the parser. */
static inline void *chiredis_create_array(const redisReadTask *task, chiredis_count elements) {
    chiredis_functions *functions = (chiredis_functions *)task->privdata;
    int level = 0;
    for(const redisReadTask *outer = task->parent; outer; outer = outer->parent)
        level++;
    if(level == 0)
        functions->elements = 0;
    if(level >= CHIREDIS_DEEPEST_ARRAY || (size_t)elements > CHIREDIS_MOST_ELEMENTS - functions->elements)
        return NULL;
    functions->elements += (size_t)elements;
    return functions->plain->createArray(task, elements);
}

/* Creates a parser with bounded arrays. The functions are filled in, and have to outlive it. */
static inline redisReader *chiredis_create_reader(chiredis_functions *functions) {
    redisReader *reader = redisReaderCreate();
    if(!reader)
        return NULL;
    functions->own = *reader->fn;
    functions->own.createArray = chiredis_create_array;
    functions->plain = reader->fn;
    functions->elements = 0;
    reader->privdata = functions;
    reader->fn = &functions->own;
    return reader;
}
#endif
