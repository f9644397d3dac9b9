/* All partial projections of a batch of tensors in one read of it: the compiled twin of kernels/plain.py.

   Samples are the lanes of the vectors (see _block.h). The code for each instruction set is compiled with the
   package and chosen when it is loaded, so one build runs on every machine. */

#define Py_LIMITED_API 0x030b0000 /* one build for every Python from 3.11 on */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 64 /* of one entry: 8 samples in double precision, 16 in single */
#define MAX_ORDER 16
#define GROUP 4         /* slices added up at a time */
#define ROW_ENTRIES 128 /* entries packed at a time: 8 kB, so that they stay in the nearest cache */
#define AHEAD 128       /* numbers of a sample fetched before they are packed: memory answers late */

typedef struct {
  long p, r;      /* dimension and rank */
  long stride;    /* numbers from one slice to the next, in a sample */
  long core;      /* entries of the core of modes k, ..., d-1 */
  long rest;      /* entries of their partial projections */
  long n_lefts;   /* r_0 ... r_{k-1} */
  long *lefts;    /* where the partial projections of mode k lie in the rest of mode 0 */
  const void *u;  /* factor, p x r */
  long group;     /* nodes of this mode made before they are added up */
  void *nodes;    /* room for them */
} Mode;

typedef struct {
  int order, partials;
  long n;               /* samples */
  long size, step;      /* numbers of a sample, and from one to the next */
  const void *core;     /* core tensor to contract the partial projections with, or NULL */
  const void *center;   /* tensor subtracted from each sample, or NULL */
  const void *scale;    /* factor of each sample, or NULL */
  void *rows;           /* room for packed rows */
  void *shift;          /* node of the centre */
  void **out;           /* core, then one array per mode: entries x samples */
  Mode modes[MAX_ORDER + 1]; /* the one after the last is the empty tensor */
} Plan;

#if defined(__GNUC__) && !defined(__clang__)
#define SHUFFLE __builtin_shuffle
#endif

#define JOIN_(a, b, c) a##_##b##_##c
#define JOIN(a, b, c) JOIN_(a, b, c)
#define NAME(x) JOIN(x, ISA, REAL)

#define ISA base
#define VBYTES 16
#include "_types.h"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MANY_ISAS
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define ISA avx2
#define VBYTES 32
#include "_types.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#define ISA avx512
#define VBYTES 64
#include "_types.h"
#pragma GCC pop_options
#endif

typedef void Run(const Plan *, const void *);

static struct {
  const char *name;
  Run *run_double, *run_float;
} isa = {"base", run_base_double, run_base_float};

static void choose_isa(void) {
#ifdef MANY_ISAS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v4"))
    isa.name = "avx512", isa.run_double = run_avx512_double, isa.run_float = run_avx512_float;
  else if (__builtin_cpu_supports("x86-64-v3"))
    isa.name = "avx2", isa.run_double = run_avx2_double, isa.run_float = run_avx2_float;
#endif
}

/* Lay out the modes: sizes, where the pieces of a node lie, and room to work in (all in one piece). */
static void *plan_memory(Plan *plan) {
  Mode *end = plan->modes + plan->order;
  *end = (Mode){.core = 1};
  long stride = 1, entries = 0, lefts = 1, n_lefts = 0;
  for (Mode *m = end - 1; m >= plan->modes; m--) {
    m->stride = stride, stride *= m->p;
    m->core = m->r * m[1].core;
    m->rest = plan->partials ? m->r * m[1].rest + m->p * m[1].core : 0;
    m->group = m == plan->modes ? 1 : GROUP;
    if (m == end - 1) m->group = ROW_ENTRIES / m->p > GROUP ? ROW_ENTRIES / m->p / GROUP * GROUP : GROUP;
    entries += m->group * (m->core + m->rest);
  }
  for (Mode *m = plan->modes; m < end; m++) m->n_lefts = lefts, n_lefts += lefts, lefts *= m->r;
  long top = plan->modes->core + plan->modes->rest, row = end[-1].group * end[-1].p;
  char *memory = malloc((size_t)(entries + top + row + 1) * BLOCK_BYTES + (size_t)n_lefts * sizeof(long));
  if (!memory) return NULL;
  char *free_ = memory + BLOCK_BYTES - (uintptr_t)memory % BLOCK_BYTES;
  plan->rows = free_, free_ += row * BLOCK_BYTES;
  plan->shift = free_, free_ += top * BLOCK_BYTES;
  for (Mode *m = plan->modes; m < end; m++) m->nodes = free_, free_ += m->group * (m->core + m->rest) * BLOCK_BYTES;
  for (Mode *m = plan->modes; m < end; m++) {
    m->lefts = (long *)free_, free_ += m->n_lefts * (long)sizeof(long);
    if (m == plan->modes) m->lefts[0] = 0;
    else
      for (long l = 0; l < m->n_lefts; l++)
        m->lefts[l] = m[-1].lefts[l / m[-1].r] + l % m[-1].r * m->rest;
  }
  return memory;
}

/* Arguments and their buffers, all released together. */
typedef struct {
  Py_buffer views[2 * MAX_ORDER + 8];
  int used;
} Views;

static void *view(Views *views, PyObject *array, const char *format, long size, int writable) {
  Py_buffer *v = views->views + views->used;
  if (PyObject_GetBuffer(array, v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)))
    return NULL;
  views->used++;
  if (strcmp(v->format, format) || v->len != size * v->itemsize) {
    PyErr_SetString(PyExc_ValueError, "sweep: arrays must be contiguous, of one type and of matching sizes");
    return NULL;
  }
  return v->buf;
}

static int view_optional(Views *views, PyObject *array, const char *format, long size, const void **out) {
  if (array == Py_None) return *out = NULL, 1;
  return (*out = view(views, array, format, size, 0)) != NULL;
}

static int read_plan(PyObject *args, Views *views, Plan *plan, void **out, const void **x, int *single) {
  PyObject *tensors, *factors, *core, *center, *scale, *outs;
  if (!PyArg_ParseTuple(args, "OO!OOOO!", &tensors, &PyTuple_Type, &factors, &core, &center, &scale,
                        &PyTuple_Type, &outs))
    return 0;
  Py_buffer *v = views->views;
  if (PyObject_GetBuffer(tensors, v, PyBUF_STRIDES | PyBUF_FORMAT)) return 0;
  views->used = 1;
  *single = !strcmp(v->format, "f"), *x = v->buf;
  const char *format = *single ? "f" : "d";
  plan->order = v->ndim - 1, plan->n = v->shape[0], plan->partials = PyTuple_Size(outs) > 1, plan->out = out;
  if (strcmp(v->format, format) || plan->order < 2 || plan->order > MAX_ORDER ||
      PyTuple_Size(factors) != plan->order || (plan->partials && PyTuple_Size(outs) != plan->order + 1)) {
    PyErr_SetString(PyExc_ValueError, "sweep: needs a batch of float tensors of order 2 to 16 and a factor per mode");
    return 0;
  }
  long ranks = 1, stride = v->itemsize;
  for (int k = plan->order; k > 0; stride *= v->shape[k--])
    if (v->strides[k] != stride && v->shape[k] > 1) {
      PyErr_SetString(PyExc_ValueError, "sweep: each sample must be contiguous");
      return 0;
    }
  plan->step = v->strides[0] / v->itemsize, plan->size = stride / v->itemsize;
  for (int k = 0; k < plan->order; k++) {
    Mode *m = plan->modes + k;
    PyObject *u = PyTuple_GetItem(factors, k);
    Py_buffer *vu = views->views + views->used;
    m->p = v->shape[k + 1];
    if (PyObject_GetBuffer(u, vu, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) return 0;
    views->used++;
    if (vu->ndim != 2 || vu->shape[0] != m->p || strcmp(vu->format, format)) {
      PyErr_Format(PyExc_ValueError, "sweep: factor %d must be a matrix with %ld rows of the type of the batch", k + 1, m->p);
      return 0;
    }
    m->r = vu->shape[1], m->u = vu->buf, ranks *= m->r;
  }
  if (!(out[0] = view(views, PyTuple_GetItem(outs, 0), format, ranks * plan->n, 1)) ||
      !view_optional(views, core, format, ranks, &plan->core) ||
      !view_optional(views, center, format, plan->size, &plan->center) ||
      !view_optional(views, scale, format, plan->n, &plan->scale))
    return 0;
  for (int k = 0; plan->partials && k < plan->order; k++) {
    Mode *m = plan->modes + k;
    long entries = m->p * (plan->core ? m->r : ranks / (m->r ? m->r : 1));
    if (!(out[k + 1] = view(views, PyTuple_GetItem(outs, k + 1), format, entries * plan->n, 1))) return 0;
  }
  return 1;
}

static PyObject *sweep(PyObject *self, PyObject *args) {
  (void)self;
  Plan plan;
  Views views = {.used = 0};
  void *out[MAX_ORDER + 1], *memory = NULL;
  const void *x;
  int single, ok = read_plan(args, &views, &plan, out, &x, &single);
  if (ok && !(memory = plan_memory(&plan))) ok = 0, PyErr_NoMemory();
  if (ok) {
    Py_BEGIN_ALLOW_THREADS (single ? isa.run_float : isa.run_double)(&plan, x);
    Py_END_ALLOW_THREADS
  }
  free(memory);
  while (views.used) PyBuffer_Release(views.views + --views.used);
  if (!ok) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"sweep", sweep, METH_VARARGS,
     "sweep(tensors, factors, core, center, scale, outs): fill outs, each entries x samples."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_sweep", .m_size = 0, .m_methods = methods};

PyMODINIT_FUNC PyInit__sweep(void) {
  choose_isa();
  PyObject *m = PyModule_Create(&module);
  if (m && PyModule_AddStringConstant(m, "instructions", isa.name)) Py_CLEAR(m);
  return m;
}
