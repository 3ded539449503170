// SPDX-License-Identifier: MIT
// Data that C++ allocates: for objects.sh.
#include <map>
#include <memory>
#include <string>
#include <vector>
#include <cstdio>
namespace sim {
struct Node { double mass; Node *next; int tag[4]; };
static Node *list;
class Grid {
  public:
    explicit Grid(std::size_t n) : cells_(n), n_(n) { weights_ = new double[n]; }
    ~Grid() { delete[] weights_; }
    void step() { for (std::size_t i = 0; i < n_; i++) cells_[i] += weights_[i] + 1; }
    double sum() const { double s = 0; for (double c : cells_) s += c; return s; }
  private:
    std::vector<double> cells_;
    double *weights_;
    std::size_t n_;
};
static void push(int i) { Node *n = new Node{ 1.0 * i, list, { i } }; list = n; }
}
static int table[64];
int main(int argc, char **)
{
    sim::Grid grid(1000);
    std::vector<int> keys;
    std::map<int, std::string> names;
    auto one = std::make_unique<sim::Node>();
    for (int i = 0; i < 500 * argc; i++) { keys.push_back(i); sim::push(i); table[i % 64]++; }
    for (int i = 0; i < 50; i++) names[i] = "a string that is too long to be kept inside";
    for (int k = 0; k < 10; k++) grid.step();
    double m = 0;
    for (auto *n = sim::list; n; n = n->next) m += n->mass;
    for (auto &p : names) m += p.second.size();
    std::printf("%g %g %d\n", grid.sum(), m + one->mass, keys.back());
}
