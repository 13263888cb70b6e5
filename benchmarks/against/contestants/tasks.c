/* The eight tasks in C, lane after lane: about what a core can do. With OpenMP all cores share the lanes. */
#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LETTERS = 24, NUMBERS = 32 }; /* of a word of `edit_distance`, of an array of `quicksort` */

static inline int32_t collatz_steps(int32_t n)
{
    int32_t steps = 0;
    while (n != 1) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    return steps;
}

void collatz(int64_t lanes, const int32_t *n, int32_t *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = collatz_steps(n[lane]);
}

static inline int32_t rejection_tries(uint32_t seed, double radius)
{
    int32_t tries = 0;
    for (;;) {
        seed = (seed * 1103 + 12345) % 65536;
        double x = seed / 65536.0;
        seed = (seed * 1103 + 12345) % 65536;
        double y = seed / 65536.0;
        tries++;
        if (x * x + y * y < radius || tries > 200)
            return tries;
    }
}

void rejection(int64_t lanes, const int32_t *seed, const double *radius, int32_t *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = rejection_tries((uint32_t)seed[lane], radius[lane]);
}

static inline double bisection_root(double target, double tolerance)
{
    double low = 0.0, high = 4.0;
    while (high - low > tolerance) {
        double middle = (low + high) / 2.0;
        if (middle * middle * middle - middle < target)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void bisection(int64_t lanes, const double *target, const double *tolerance, double *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = bisection_root(target[lane], tolerance[lane]);
}

static inline double slope(double t, double y, double k)
{
    return -k * (y - cos(t)) - sin(t);
}

static double rk45_end(double y, double end, double k, double tolerance)
{
    double t = 0.0, h = 0.1 * end;
    while (t < end) {
        h = fmin(h, end - t);
        double k1 = slope(t, y, k);
        double k2 = slope(t + h / 5.0, y + h * (k1 / 5.0), k);
        double k3 = slope(t + h * 3.0 / 10.0, y + h * (k1 * 3.0 / 40.0 + k2 * 9.0 / 40.0), k);
        double k4 = slope(t + h * 4.0 / 5.0, y + h * (k1 * 44.0 / 45.0 - k2 * 56.0 / 15.0 + k3 * 32.0 / 9.0), k);
        double b = k1 * 19372.0 / 6561.0 - k2 * 25360.0 / 2187.0 + k3 * 64448.0 / 6561.0 - k4 * 212.0 / 729.0;
        double k5 = slope(t + h * 8.0 / 9.0, y + h * b, k);
        b = k1 * 9017.0 / 3168.0 - k2 * 355.0 / 33.0 + k3 * 46732.0 / 5247.0 + k4 * 49.0 / 176.0;
        double k6 = slope(t + h, y + h * (b - k5 * 5103.0 / 18656.0), k);
        b = k1 * 35.0 / 384.0 + k3 * 500.0 / 1113.0 + k4 * 125.0 / 192.0 - k5 * 2187.0 / 6784.0;
        double new = y + h * (b + k6 * 11.0 / 84.0);
        double k7 = slope(t + h, new, k);
        b = k1 * 71.0 / 57600.0 - k3 * 71.0 / 16695.0 + k4 * 71.0 / 1920.0 - k5 * 17253.0 / 339200.0;
        double error = h * (b + k6 * 22.0 / 525.0 - k7 / 40.0);
        double ratio = fabs(error) / (tolerance * fmax(1.0, fabs(y)));
        if (ratio <= 1.0) {
            t += h;
            y = new;
        }
        h *= fmin(5.0, fmax(0.2, 0.9 * pow(fmax(ratio, 1e-10), -0.2)));
    }
    return y;
}

void rk45(int64_t lanes, const double *y, const double *end, const double *k, const double *tolerance, double *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = rk45_end(y[lane], end[lane], k[lane], tolerance[lane]);
}

static int32_t placements(int32_t n, int32_t row, int32_t columns, int32_t rising, int32_t falling)
{
    if (row == n)
        return 1;
    int32_t total = 0;
    for (int32_t column = 0; column < n; column++) {
        int32_t one = 1 << column, two = 1 << (row + column), three = 1 << (row - column + n);
        if (!(columns & one) && !(rising & two) && !(falling & three))
            total += placements(n, row + 1, columns | one, rising | two, falling | three);
    }
    return total;
}

void queens(int64_t lanes, const int32_t *n, int32_t *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = placements(n[lane], 0, 0, 0, 0);
}

static double refined(double a, double b, double fa, double fm, double fb, double tolerance, int32_t depth)
{
    double m = (a + b) / 2.0, x = (a + m) / 2.0, y = (m + b) / 2.0;
    double fx = sin(x * x), fy = sin(y * y);
    double whole = (b - a) / 6.0 * (fa + 4.0 * fm + fb);
    double left = (m - a) / 6.0 * (fa + 4.0 * fx + fm);
    double right = (b - m) / 6.0 * (fm + 4.0 * fy + fb);
    if (depth >= 20 || fabs(left + right - whole) < tolerance)
        return left + right;
    double half = tolerance / 2.0;
    return refined(a, m, fa, fx, fm, half, depth + 1) + refined(m, b, fm, fy, fb, half, depth + 1);
}

void simpson(int64_t lanes, const double *a, const double *b, const double *tolerance, double *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++) {
        double m = (a[lane] + b[lane]) / 2.0;
        double fa = sin(a[lane] * a[lane]), fm = sin(m * m), fb = sin(b[lane] * b[lane]);
        out[lane] = refined(a[lane], b[lane], fa, fm, fb, tolerance[lane], 0);
    }
}

static int32_t distance(const int32_t *a, const int32_t *b, int32_t m, int32_t n, const int32_t *start)
{
    int32_t row[LETTERS + 1];
    memcpy(row, start, sizeof row);
    for (int32_t i = 0; i < m; i++) {
        int32_t before = row[0];
        row[0] = i + 1;
        for (int32_t j = 0; j < n; j++) {
            int32_t above = row[j + 1], least = row[j] + 1;
            if (above + 1 < least)
                least = above + 1;
            if (before + (a[i] != b[j]) < least)
                least = before + (a[i] != b[j]);
            row[j + 1] = least;
            before = above;
        }
    }
    return row[n];
}

void edit_distance(int64_t lanes, const int32_t *a, const int32_t *b, const int32_t *m, const int32_t *n,
                   const int32_t *row, int32_t *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++)
        out[lane] = distance(a + lane * LETTERS, b + lane * LETTERS, m[lane], n[lane], row + lane * (LETTERS + 1));
}

static void exchange(double *a, int32_t i, int32_t j)
{
    double kept = a[i];
    a[i] = a[j];
    a[j] = kept;
}

static void sort(double *a, int32_t low, int32_t high)
{
    if (low >= high)
        return;
    double pivot = a[high];
    int32_t middle = low;
    for (int32_t i = low; i < high; i++)
        if (a[i] < pivot)
            exchange(a, i, middle++);
    exchange(a, middle, high);
    sort(a, low, middle - 1);
    sort(a, middle + 1, high);
}

void quicksort(int64_t lanes, const double *a, const int32_t *low, const int32_t *high, double *out)
{
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t lane = 0; lane < lanes; lane++) {
        memcpy(out + lane * NUMBERS, a + lane * NUMBERS, NUMBERS * sizeof *a);
        sort(out + lane * NUMBERS, low[lane], high[lane]);
    }
}
