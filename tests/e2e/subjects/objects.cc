// SPDX-License-Identifier: MIT
// C++: statics that several threads want at once, call_once, thread_local with destructors, exceptions, futures.
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <thread>
#include <vector>

static std::mutex lock;
static std::atomic<int> built, gone;

struct slow {
    int value = 42;
    slow()
    {
        for (int i = 0; i < 100; i++)
            std::lock_guard<std::mutex> held(lock);
        built++;
    }
};

struct local {
    std::vector<int> data = std::vector<int>(10, 3);
    ~local() { gone++; }
};

static slow &instance()
{
    static slow only;
    return only;
}

int main()
{
    std::vector<std::thread> threads;
    std::atomic<long> sum{ 0 };
    std::once_flag once;

    for (int i = 0; i < 8; i++)
        threads.emplace_back([&] {
            static thread_local local own;
            sum += instance().value + own.data[3];
            std::call_once(once, [&] {
                std::lock_guard<std::mutex> held(lock);
                sum += 1000;
            });
            try {
                throw 7;
            } catch (int thrown) {
                sum += thrown;
            }
        });
    for (auto &t : threads)
        t.join();
    sum += std::async(std::launch::async, [] { return 5; }).get();
    std::cout << sum << " " << built << " " << gone << "\n";
    return 3;
}
