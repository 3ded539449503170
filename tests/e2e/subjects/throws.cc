// SPDX-License-Identifier: MIT
// Exceptions through many frames, call-backs and threads; virtual functions, templates, variables of threads.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>
#include <map>
#include <atomic>
#include <algorithm>
#include <thread>
#include <future>
#include <memory>
#include <functional>
struct D {
    std::atomic<int> *p;
    D(std::atomic<int> *q) : p(q)
    {
        ++*p;
    }
    ~D()
    {
        --*p;
    }
};
static std::atomic<int> live;
static int thrower(int n)
{
    D d(&live);
    if (n == 0)
        throw std::runtime_error("deep");
    if (n == 7)
        throw 42;
    return thrower(n - 1) + 1;
}
struct B {
    virtual ~B() {}
    virtual int f(int x) = 0;
};
struct X : B {
    int f(int x) override
    {
        return x * 2;
    }
};
struct Y : B {
    int f(int x) override
    {
        if (x > 5)
            throw std::string("Y");
        return x * 3;
    }
};
struct M1 {
    virtual int g()
    {
        return 1;
    }
    virtual ~M1() {}
    int a = 1;
};
struct M2 {
    virtual int h()
    {
        return 2;
    }
    virtual ~M2() {}
    int b = 2;
};
struct MM : M1, M2 {
    int g() override
    {
        return a + 10;
    }
    int h() override
    {
        return b + 20;
    }
};
thread_local std::string tls = "t";
template <class T> T sum(const std::vector<T> &v)
{
    T s{};
    for (auto &x : v)
        s += x;
    return s;
}
static int rethrow(int k)
{
    try {
        return thrower(k);
    } catch (int i) {
        throw;
    } catch (std::exception &e) {
        try {
            throw 5;
        } catch (int j) {
            return j;
        }
    }
}
int main()
{
    int tot = 0;
    for (int i = 0; i < 12; i++) {
        try {
            tot += thrower(i);
        } catch (std::exception &e) {
            tot += (int)std::string(e.what()).size();
        } catch (int x) {
            tot += x;
        }
    }
    printf("%d live %d\n", tot, live.load());
    for (int i = 0; i < 10; i++) {
        try {
            tot += rethrow(i);
        } catch (...) {
            tot += 1000;
        }
    }
    printf("%d\n", tot);
    std::vector<std::unique_ptr<B>> v;
    for (int i = 0; i < 10; i++)
        if (i & 1)
            v.emplace_back(new X);
        else
            v.emplace_back(new Y);
    for (size_t i = 0; i < v.size(); i++)
        try {
            tot += v[i]->f((int)i);
        } catch (std::string &s) {
            tot += 100;
        }
    printf("%d\n", tot);
    std::map<std::string, int> m;
    for (int i = 0; i < 1000; i++)
        m[std::to_string(i * 7919 % 1000)] += i;
    long h = 0;
    for (auto &[k, x] : m)
        h = h * 131 + x + (long)k.size();
    printf("%ld\n", h);
    std::vector<int> a;
    unsigned r = 7;
    for (int i = 0; i < 10000; i++) {
        r = r * 1664525u + 1013904223u;
        a.push_back((int)(r >> 8));
    }
    std::sort(a.begin(), a.end(), [](int p, int q) { return p > q; });
    printf("%d %d\n", std::is_sorted(a.rbegin(), a.rend()), sum(a) != 0);
    std::vector<std::thread> t;
    std::vector<int> res(6);
    for (int i = 0; i < 6; i++)
        t.emplace_back([&, i] {
            tls += std::to_string(i);
            for (int k = 0; k < 100; k++) {
                try {
                    res[i] += thrower(k % 10);
                } catch (int x) {
                    res[i] += x;
                } catch (...) {
                    res[i] += 2;
                }
            }
            res[i] += (int)tls.size();
        });
    for (auto &x : t)
        x.join();
    for (int x : res)
        printf("%d ", x);
    puts("");
    auto f = std::async(std::launch::async, []() -> int { throw std::logic_error("as"); });
    try {
        f.get();
    } catch (std::exception &e) {
        puts(e.what());
    }
    MM mm;
    M2 *p = &mm;
    printf("%d %d\n", p->h(), static_cast<M1 *>(&mm)->g());
    std::function<int(int)> fn = [&](int x) { return x + tot; };
    printf("%d\n", fn(1));
    try {
        std::vector<int>().at(3);
    } catch (std::out_of_range &) {
        puts("oor");
    }
    printf("%d\n", live.load());
    return 0;
}
